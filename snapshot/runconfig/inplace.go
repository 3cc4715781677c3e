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

// InPlace turns a captured configuration into that of the same container again. Names, networks,
// aliases, addresses, the host name and the labels of Compose stay. old is nil if the container is gone. InPlace
// returns what the user has to know.
func (sp *Spec) InPlace(s catalog.Snapshot, old *container.InspectResponse) plan.Plan {
	sp.Config.Image = s.Source()
	sp.mounts = s.Mounts
	sp.Host.ContainerIDFile = ""
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
	if sp.defaultHostname && sp.Config.Hostname != "" {
		own[labels.KeyHostname] = sp.Config.Hostname
	}
	return notes
}

// PlacedVolume is a captured volume, and the volume that it is restored into; or a bind mount whose content was captured,
// which goes back to where it was. Its name is then its key, a path of the host.
type PlacedVolume struct {
	NewVolume
	Exists    bool   // the volume or directory is there, so its content is replaced
	readOnly  bool   // the container mounts it read-only
	Kept      string // why its content stays; empty: it is restored
	Elsewhere bool   // it refers to storage that may have content although the volume is gone
}

// PlaceVolumes decides where each captured volume is restored, and makes the configuration mount it
// there.
func (sp *Spec) PlaceVolumes(s catalog.Snapshot, old *container.InspectResponse) []PlacedVolume {
	var placed []PlacedVolume
	for _, m := range s.Mounts {
		if !hasContent(m) {
			continue
		}
		v := NewVolume{Original: m.Key(), Create: recreateVolume(m), Archive: m.Archive}
		if m.Name == "" {
			v.Create.Name = m.Key() // the configuration mounts it already
		} else {
			sp.placeVolume(m, &v, placeOf(m, s, old))
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

// placeVolume has a captured volume restored into the one of that name, and makes the configuration mount that.
func (sp *Spec) placeVolume(m labels.Mount, v *NewVolume, name string) {
	v.Create.Name = name
	empty := v.Archive != nil && v.Archive.Entries <= 1
	if m.Anonymous || empty || name != m.Name {
		sp.mountVolume(m, *v)
	}
}

// placeOf returns the name of the volume that m is restored into. That is m's own name, with two
// exceptions: an anonymous volume gets another name whenever its container is made again, and
// another container has other volumes. Then it is the volume that old mounts in the same place.
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

// Keep leaves the volume's content as it is in two cases: the snapshot does not hold it; or the
// container only reads it, so that somebody else writes it, and the volume is not in named.
func (v *PlacedVolume) Keep(named []string) {
	switch isThere := v.Exists || v.Elsewhere; {
	case v.Archive == nil && v.Exists:
		v.Kept = "the snapshot does not hold its content"
	case v.Archive != nil && isThere && v.readOnly && !slices.Contains(named, v.Create.Name) && !slices.Contains(named, v.Original):
		v.Archive, v.Kept = nil, "the container only reads it, and it was not named"
	}
}

// EndpointsOf returns a container's endpoints in a form from which they can be made again.
func EndpointsOf(c container.InspectResponse) dockerop.Endpoints {
	if c.NetworkSettings == nil {
		return nil
	}
	sp := Spec{Config: *c.Config, Host: *c.HostConfig, Endpoints: c.NetworkSettings.Networks}
	sp.keepEndpoints(c.ID)
	return sp.Endpoints
}

// IsOneShot tells whether the engine removes the container when it stops. A container made with
// --rm that does not run stays.
func IsOneShot(c container.InspectResponse) bool { return c.HostConfig.AutoRemove && c.State.Running }

// SpecOf returns the configuration that a container has.
func SpecOf(c container.InspectResponse) *Spec {
	sp := &Spec{Config: *c.Config, Host: *c.HostConfig}
	sp.Host.Links = createLinks(sp.Host.Links)
	return sp
}

// PeersOf returns the containers that have to run for this one to start.
func PeersOf(c container.InspectResponse) []string { return SpecOf(c).Peers() }

// defaultStopTimeout is how many seconds an engine gives a container to stop that does not say.
// StopGrace is how long the engine may then take to kill it.
const (
	defaultStopTimeout = 10
	StopGrace          = 2 * time.Second
)

// StopTimeout returns how many seconds a container has to stop. An unlimited timeout counts as the
// default.
func StopTimeout(c container.InspectResponse) int {
	if c.Config == nil || c.Config.StopTimeout == nil || *c.Config.StopTimeout < 0 {
		return defaultStopTimeout
	}
	return *c.Config.StopTimeout
}
