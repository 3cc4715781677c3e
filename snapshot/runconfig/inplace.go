package runconfig

import (
	"maps"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// InPlace turns a captured configuration into that of the same container again:
// its names, networks, aliases, addresses and Compose labels stay. It returns
// what the user has to know of.
func (sp *Spec) InPlace(s catalog.Snapshot, old *container.InspectResponse) plan.Plan {
	sp.Config.Image = s.Ref()
	sp.mounts = s.Mounts
	sp.Host.ContainerIDFile = ""
	if len(s.Container.ID) >= dockerop.ShortID && sp.Config.Hostname == s.Container.ID[:dockerop.ShortID] {
		sp.Config.Hostname = ""
	}
	own := map[string]string{}
	maps.Copy(own, sp.Config.Labels)
	own[labels.KeyRestoredFrom] = string(s.ID)
	sp.Config.Labels = own
	notes := sp.keepEndpoints(s.Container.ID)
	sp.Host.Links = createLinks(sp.Host.Links)
	if old == nil {
		sp.volumesFromAsMounts(s.Mounts)
	}
	sp.keepNamespaceRules()
	return notes
}

// PlacedVolume is a captured volume and where it is going to be restored.
type PlacedVolume struct {
	NewVolume
	Exists    bool
	readOnly  bool   // the container only reads it
	Kept      string // why it is left as it is; empty: it is not
	Elsewhere bool   // it is only a pointer to storage, which may hold something although it is gone
}

// PlaceVolumes says where each captured volume goes, and points the
// configuration there.
func (sp *Spec) PlaceVolumes(s catalog.Snapshot, old *container.InspectResponse) []PlacedVolume {
	var placed []PlacedVolume
	for _, m := range s.Mounts {
		if m.Type != string(mount.TypeVolume) || m.Name == "" {
			continue
		}
		v := NewVolume{Original: m.Name, Create: recreateVolume(m), Archive: m.Archive}
		v.Create.Name = placeOf(m, s, old)
		empty := v.Archive != nil && v.Archive.Entries <= 1
		if m.Anonymous || empty || v.Create.Name != m.Name {
			sp.mountVolume(m, v)
		}
		at := slices.IndexFunc(placed, func(other PlacedVolume) bool { return other.Create.Name == v.Create.Name })
		if at >= 0 {
			placed[at].readOnly = placed[at].readOnly && !m.RW
			continue
		}
		placed = append(placed, PlacedVolume{NewVolume: v, readOnly: !m.RW, Elsewhere: pointsElsewhere(m) && m.Options["type"] != "tmpfs"})
	}
	return placed
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

// Keep leaves a volume as it is of which the snapshot does not hold the content; or
// which the container only reads, so that it is another's who writes it, unless it is
// named.
func (v *PlacedVolume) Keep(named []string) {
	switch isThere := v.Exists || v.Elsewhere; {
	case v.Archive == nil && v.Exists:
		v.Kept = "the snapshot does not hold its content"
	case v.Archive != nil && isThere && v.readOnly && !slices.Contains(named, v.Create.Name) && !slices.Contains(named, v.Original):
		v.Archive, v.Kept = nil, "the container only reads it, and it was not named"
	}
}

// EndpointsOf are a container's endpoints as they could be made again.
func EndpointsOf(c container.InspectResponse) dockerop.Endpoints {
	if c.NetworkSettings == nil {
		return nil
	}
	sp := Spec{Config: *c.Config, Host: *c.HostConfig, Endpoints: c.NetworkSettings.Networks}
	sp.keepEndpoints(c.ID)
	return sp.Endpoints
}

// IsOneShot tells whether a container is gone once it has stopped. One that was
// made with --rm and does not run is not.
func IsOneShot(c container.InspectResponse) bool { return c.HostConfig.AutoRemove && c.State.Running }

// PeersOf are the containers that have to run for this one to start.
func PeersOf(c container.InspectResponse) []string {
	host := *c.HostConfig
	host.Links = createLinks(host.Links)
	return (&Spec{Host: host}).Peers()
}

// defaultStopTimeout is how many seconds an engine gives a container to stop
// that does not say, and stopGrace how long it may take to kill it after that.
const (
	defaultStopTimeout = 10
	StopGrace          = 2 * time.Second
)

// StopTimeout is how many seconds a container has to stop. One that has any time
// it likes is not waited for longer than others are.
func StopTimeout(c container.InspectResponse) int {
	if c.Config == nil || c.Config.StopTimeout == nil || *c.Config.StopTimeout < 0 {
		return defaultStopTimeout
	}
	return *c.Config.StopTimeout
}
