package snapshot

import (
	"maps"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// inPlace turns a captured configuration into that of the same container again:
// its names, networks, aliases, addresses and Compose labels stay. It returns
// what the user has to know of.
func (sp *spec) inPlace(s Snapshot, old *container.InspectResponse) Plan {
	sp.config.Image = s.Ref()
	sp.mounts = s.Mounts
	sp.host.ContainerIDFile = ""
	if len(s.Container.ID) >= shortID && sp.config.Hostname == s.Container.ID[:shortID] {
		sp.config.Hostname = ""
	}
	own := map[string]string{}
	maps.Copy(own, sp.config.Labels)
	own[labels.KeyVersion] = labels.SchemaVersion
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
	elsewhere bool // it is only a pointer to storage, which may hold something although it is gone
}

// placeVolumes says where each captured volume goes, and points the
// configuration there.
func (sp *spec) placeVolumes(s Snapshot, old *container.InspectResponse) []placedVolume {
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
		known := slices.ContainsFunc(placed, func(other placedVolume) bool { return other.create.Name == v.create.Name })
		if !known {
			placed = append(placed, placedVolume{newVolume: v, elsewhere: pointsElsewhere(m) && m.Options["type"] != "tmpfs"})
		}
	}
	return placed
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
func placeOf(m labels.Mount, s Snapshot, old *container.InspectResponse) string {
	if old == nil || !m.Anonymous && (old.ID == s.Container.ID || containerName(*old) == s.Container.Name) {
		return m.Name
	}
	for _, point := range old.Mounts {
		if point.Type == mount.TypeVolume && point.Destination == m.Destination {
			return point.Name
		}
	}
	return m.Name
}

// written are the volumes whose content will be changed.
func (r *replacement) written() []string {
	var names []string
	for _, v := range r.volumes {
		if v.archive != nil {
			names = append(names, v.create.Name)
		}
	}
	return names
}
