package snapshot

import (
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// inPlace turns a captured configuration into that of the same container again:
// its names, networks, aliases, addresses and Compose labels stay.
func (sp *spec) inPlace(s Snapshot, old *container.InspectResponse) {
	sp.config.Image = s.Ref()
	sp.mounts = s.Mounts
	sp.host.ContainerIDFile = ""
	if len(s.Container.ID) >= shortID && sp.config.Hostname == s.Container.ID[:shortID] {
		sp.config.Hostname = ""
	}
	own := map[string]string{}
	for key := range s.imageLabels() {
		if strings.HasPrefix(key, labels.Prefix) {
			own[key] = ""
		}
	}
	maps.Copy(own, sp.config.Labels)
	own[labels.KeyVersion] = labels.SchemaVersion
	own[labels.KeyRestoredFrom] = string(s.ID)
	sp.config.Labels = own
	sp.keepEndpoints(s.Container.ID)
	sp.host.Links = createLinks(sp.host.Links)
	if old == nil {
		sp.volumesFromAsMounts(s.Mounts)
	}
	sp.keepNamespaceRules()
}

// keepEndpoints keeps of each network all that was configured, and drops what
// the engine only reports.
func (sp *spec) keepEndpoints(originalID string) {
	mode := sp.host.NetworkMode
	if !mode.IsUserDefined() && !mode.IsBridge() && !mode.IsDefault() {
		sp.endpoints = nil
		return
	}
	isOwnID := func(alias string) bool { return len(alias) >= shortID && strings.HasPrefix(originalID, alias) }
	kept := map[string]*network.EndpointSettings{}
	for name, e := range sp.endpoints {
		kept[name] = &network.EndpointSettings{
			IPAMConfig: e.IPAMConfig, Links: e.Links, DriverOpts: e.DriverOpts, GwPriority: e.GwPriority,
			MacAddress: e.MacAddress, Aliases: slices.DeleteFunc(slices.Clone(e.Aliases), isOwnID),
		}
	}
	// Of its main network the engine tells whether the address was chosen, or made up.
	if main := sp.mainEndpoint(kept); main != nil && sp.config.MacAddress == "" { //nolint:staticcheck // SA1019: deprecated to set, but that is where it tells
		main.MacAddress = ""
	}
	sp.endpoints = kept
}

// mainEndpoint is the endpoint in the network that the network mode names.
func (sp *spec) mainEndpoint(endpoints map[string]*network.EndpointSettings) *network.EndpointSettings {
	if main := endpoints[string(sp.host.NetworkMode)]; main != nil || !sp.host.NetworkMode.IsDefault() {
		return main
	}
	return endpoints[network.NetworkBridge]
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

// writes tells whether the volume's content will be changed.
func (r *replacement) writes(volume string) bool {
	return slices.ContainsFunc(r.volumes, func(v placedVolume) bool { return v.create.Name == volume && v.archive != nil })
}
