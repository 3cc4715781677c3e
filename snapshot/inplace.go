package snapshot

import (
	"fmt"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// inPlace turns a captured configuration into that of the same container again:
// its names, networks, aliases, addresses and Compose labels stay. It returns
// what the user has to know of.
func (sp *spec) inPlace(s catalog.Snapshot, old *container.InspectResponse) plan.Plan {
	sp.config.Image = s.Ref()
	sp.mounts = s.Mounts
	sp.host.ContainerIDFile = ""
	if len(s.Container.ID) >= dockerop.ShortID && sp.config.Hostname == s.Container.ID[:dockerop.ShortID] {
		sp.config.Hostname = ""
	}
	own := map[string]string{}
	maps.Copy(own, sp.config.Labels)
	own[labels.KeyRestoredFrom] = string(s.ID)
	sp.config.Labels = own
	notes := sp.keepEndpoints(s.Container.ID)
	sp.host.Links = createLinks(sp.host.Links)
	if old == nil {
		sp.volumesFromAsMounts(s.Mounts)
	}
	sp.keepNamespaceRules()
	return notes
}

// placedVolume is a captured volume and where it is going to be restored.
type placedVolume struct {
	newVolume
	exists    bool
	readOnly  bool   // the container only reads it
	kept      string // why it is left as it is; empty: it is not
	elsewhere bool   // it is only a pointer to storage, which may hold something although it is gone
}

// placeVolumes says where each captured volume goes, and points the
// configuration there.
func (sp *spec) placeVolumes(s catalog.Snapshot, old *container.InspectResponse) []placedVolume {
	var placed []placedVolume
	for _, m := range s.Mounts {
		if m.Type != string(mount.TypeVolume) || m.Name == "" {
			continue
		}
		v := newVolume{original: m.Name, create: recreateVolume(m), archive: m.Archive}
		v.create.Name = placeOf(m, s, old)
		empty := v.archive != nil && v.archive.Entries <= 1
		if m.Anonymous || empty || v.create.Name != m.Name {
			sp.mountVolume(m, v)
		}
		at := slices.IndexFunc(placed, func(other placedVolume) bool { return other.create.Name == v.create.Name })
		if at >= 0 {
			placed[at].readOnly = placed[at].readOnly && !m.RW
			continue
		}
		placed = append(placed, placedVolume{newVolume: v, readOnly: !m.RW, elsewhere: pointsElsewhere(m) && m.Options["type"] != "tmpfs"})
	}
	return placed
}

// mountAnonymous has the engine make those anonymous volumes anew that are gone, together
// with the container.
func (r *replacement) mountAnonymous() {
	mounts := r.snapshot.Mounts
	for i := range r.volumes {
		v := &r.volumes[i]
		at := slices.IndexFunc(mounts, func(m labels.Mount) bool { return m.Type == string(mount.TypeVolume) && m.Name == v.original })
		if !v.exists && r.spec.becomesAnonymous(mounts[at], mounts) {
			v.destination = mounts[at].Destination
			r.spec.mountAnonymous(mounts[at])
		}
	}
}

// anonymous are the volumes that the engine makes together with the container.
func (r *replacement) anonymous() []newVolume {
	var all []newVolume
	for _, v := range r.volumes {
		if v.isAnonymous() {
			all = append(all, v.newVolume)
		}
	}
	return all
}

// places are the names of the volumes that captured ones are restored into.
func (r *replacement) places() []string {
	names := make([]string, len(r.volumes))
	for i, v := range r.volumes {
		names[i] = v.create.Name
	}
	return names
}

// placeOf is the volume that a captured one is restored into: that of its name.
// But a name that nobody gave changes whenever the container is made again, and
// another container has volumes of its own: there it is what is mounted in the
// same place.
func placeOf(m labels.Mount, s catalog.Snapshot, old *container.InspectResponse) string {
	if old == nil || !m.Anonymous && (old.ID == s.Container.ID || dockerop.ContainerName(*old) == s.Container.Name) {
		return m.Name
	}
	for _, point := range old.Mounts {
		if point.Type == mount.TypeVolume && point.Destination == m.Destination {
			return point.Name
		}
	}
	return m.Name
}

// keep leaves a volume as it is of which the snapshot does not hold the content; or
// which the container only reads, so that it is another's who writes it, unless it is
// named.
func (v *placedVolume) keep(named []string) {
	switch isThere := v.exists || v.elsewhere; {
	case v.archive == nil && v.exists:
		v.kept = "the snapshot does not hold its content"
	case v.archive != nil && isThere && v.readOnly && !slices.Contains(named, v.create.Name) && !slices.Contains(named, v.original):
		v.archive, v.kept = nil, "the container only reads it, and it was not named"
	}
}

// unknownVolumes finds volumes that were named, and that the snapshot does not hold.
func (r *replacement) unknownVolumes(named []string) []plan.Problem {
	var problems []plan.Problem
	for _, name := range named {
		held := slices.ContainsFunc(r.volumes, func(v placedVolume) bool {
			return v.archive != nil && (v.create.Name == name || v.original == name)
		})
		if !held {
			problems = append(problems, plan.Problem{
				Kind: plan.ProblemNotHeld, Subject: name, Text: fmt.Sprintf("snapshot %s does not hold the content of a volume %s", r.snapshot.ID, name),
			})
		}
	}
	return problems
}

// written are the volumes whose content will be changed.
func (r *replacement) written() []string {
	var names []string
	for _, v := range r.volumes {
		if v.archive != nil && !v.isAnonymous() {
			names = append(names, v.create.Name)
		}
	}
	return names
}
