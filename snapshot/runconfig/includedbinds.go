package runconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// A bind mount whose content a snapshot holds is restored as a volume is: in place, the directory of the host gets that
// content back; a copy gets a new volume instead of the bind mount.

// hasContent tells whether a restore has something to do with what a mount shows: it is a volume, or a bind mount whose
// content the snapshot holds.
func hasContent(m labels.Mount) bool {
	return m.Type == string(mount.TypeVolume) && m.Name != "" || isIncludedBind(m)
}

func isIncludedBind(m labels.Mount) bool {
	return m.Type == string(mount.TypeBind) && m.Archive != nil
}

// HoldsBind tells whether a snapshot with these mounts holds the content of the bind mount at a destination.
func HoldsBind(mounts []labels.Mount, destination string) bool {
	return slices.ContainsFunc(mounts, func(m labels.Mount) bool {
		return isIncludedBind(m) && isAt(m.Destination, destination)
	})
}

// volumeBase is what the name of the volume begins with that a copy gets instead of a bind mount: where it is mounted, as
// far as that can be in a name.
func volumeBase(destination string) string {
	base := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '-'
	}, destination)
	const longest = 100
	base = strings.Trim(base[:min(len(base), longest)], "-._")
	if base == "" {
		return "bind"
	}
	return base
}

// nameApart gives a volume a name that none of those in made has: two destinations may look alike in a name.
func (v *NewVolume) nameApart(made []NewVolume) {
	first := v.Create.Name
	for n := 2; slices.ContainsFunc(made, func(other NewVolume) bool { return other.Create.Name == v.Create.Name }); n++ {
		v.Create.Name = fmt.Sprintf("%s-%d", first, n)
	}
}

// mountInstead makes the configuration mount a volume where it had a bind mount.
func (sp *Spec) mountInstead(m labels.Mount, v NewVolume) {
	empty := v.Archive != nil && v.Archive.Entries <= 1 // the root entry
	for i := range sp.Host.Mounts {
		point := &sp.Host.Mounts[i]
		if point.Type == mount.TypeBind && isAt(point.Target, m.Destination) {
			*point = mount.Mount{
				Type: mount.TypeVolume, Source: v.Create.Name, Target: point.Target, ReadOnly: point.ReadOnly,
				VolumeOptions: &mount.VolumeOptions{NoCopy: empty},
			}
			return
		}
	}
	sp.Host.Binds = slices.DeleteFunc(slices.Clone(sp.Host.Binds), func(text string) bool {
		b, ok := parseBind(text)
		return ok && b.IsPath() && isAt(b.Destination, m.Destination)
	})
	sp.mountVolume(m, v)
}
