package snapshot

import (
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// forCopy turns a captured configuration into that of a new container which
// lives beside the original and takes none of its traffic: no aliases, fixed
// addresses or MAC, no Compose labels.
func (sp *spec) forCopy(s Snapshot) {
	sp.config.Image = s.Ref()
	sp.host.ContainerIDFile = ""
	sp.copyHostname(s.Container.ID)
	sp.copyLabels(s)
	sp.copyEndpoints()
	sp.host.Links = createLinks(sp.host.Links)
	sp.volumesFromAsMounts(s.Mounts)
	sp.keepNamespaceRules()
}

// copyHostname drops a hostname that only came from the original's ID.
func (sp *spec) copyHostname(originalID string) {
	if len(originalID) >= shortID && sp.config.Hostname == originalID[:shortID] {
		sp.config.Hostname = ""
	}
	sp.config.MacAddress = "" //nolint:staticcheck // SA1019: deprecated, but engines before 25 read it.
}

// copyLabels leaves off Compose's labels and those that the new container would
// inherit from its image: they describe the image.
func (sp *spec) copyLabels(s Snapshot) {
	own := map[string]string{}
	for key, value := range sp.config.Labels {
		if !strings.HasPrefix(key, composePrefix) {
			own[key] = value
		}
	}
	for key := range s.imageLabels() {
		if strings.HasPrefix(key, labels.Prefix) {
			own[key] = ""
		}
	}
	own[labels.KeyVersion] = labels.SchemaVersion
	own[labels.KeyRestoredFrom] = string(s.ID)
	sp.config.Labels = own
}

// imageLabels are those that the snapshot's image has of its record.
func (s Snapshot) imageLabels() map[string]string {
	encoded, err := labels.Encode(s.Record)
	if err != nil {
		return nil // it was decoded, so it can be encoded
	}
	return encoded
}

// copyEndpoints keeps of each network what was configured, and drops what would
// make the copy answer in the original's place.
func (sp *spec) copyEndpoints() {
	mode := sp.host.NetworkMode
	if !mode.IsUserDefined() && !mode.IsBridge() && !mode.IsDefault() {
		sp.endpoints = nil
		return
	}
	copied := map[string]*network.EndpointSettings{}
	for name, e := range sp.endpoints {
		copied[name] = &network.EndpointSettings{DriverOpts: e.DriverOpts, GwPriority: e.GwPriority}
	}
	sp.endpoints = copied
}

// createLinks turns links as the engine reports them, /other:/self/alias, into
// links as it takes them, other:alias.
func createLinks(reported []string) []string {
	links := make([]string, 0, len(reported))
	for _, link := range reported {
		target, path, found := strings.Cut(link, ":")
		if !found {
			links = append(links, link)
			continue
		}
		alias := path[strings.LastIndex(path, "/")+1:]
		links = append(links, strings.TrimPrefix(target, "/")+":"+alias)
	}
	if len(links) == 0 {
		return nil
	}
	return links
}

// volumesFromAsMounts names the volumes that came from another container, which
// may be gone or have others by now.
func (sp *spec) volumesFromAsMounts(mounts []labels.Mount) {
	if len(sp.host.VolumesFrom) == 0 {
		return
	}
	sp.host.VolumesFrom = nil
	configured := sp.destinations()
	for _, m := range mounts {
		source := m.Name
		if m.Type == "bind" {
			source = m.Source
		}
		if source == "" || configured[m.Destination] {
			continue
		}
		bind := source + ":" + m.Destination
		if !m.RW {
			bind += ":ro"
		}
		sp.host.Binds = append(sp.host.Binds, bind)
	}
}

// destinations are the mount points that the configuration itself names.
func (sp *spec) destinations() map[string]bool {
	found := map[string]bool{}
	for destination := range sp.config.Volumes {
		found[destination] = true
	}
	for _, bind := range sp.host.Binds {
		if _, destination, ok := splitBind(bind); ok {
			found[destination] = true
		}
	}
	for _, m := range sp.host.Mounts {
		found[m.Target] = true
	}
	return found
}

// splitBind reads source:destination[:options] of a Linux engine.
func splitBind(bind string) (source, destination string, ok bool) {
	parts := strings.Split(bind, ":")
	if len(parts) < 2 {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// keepNamespaceRules drops what the engine reports of a container that shares a
// namespace, but refuses to be told when making one.
func (sp *spec) keepNamespaceRules() {
	if sp.host.NetworkMode.IsContainer() {
		sp.config.Hostname, sp.config.Domainname = "", ""
		sp.config.ExposedPorts = nil
		sp.host.PortBindings, sp.host.PublishAllPorts = nil, false
		sp.host.DNS, sp.host.DNSOptions, sp.host.DNSSearch, sp.host.ExtraHosts, sp.host.Links = nil, nil, nil, nil, nil
	}
	if sp.host.NetworkMode.IsHost() {
		sp.host.Links = nil
	}
	if sp.host.UTSMode.IsHost() {
		sp.config.Hostname, sp.config.Domainname = "", ""
	}
}

// override applies what the user asked to be different.
func (sp *spec) override(o RestoreOptions) {
	sp.config.Env = overrideEnv(sp.config.Env, o.Env)
	maps.Copy(sp.config.Labels, o.Labels)
	sp.overrideResources(o)
	sp.overrideNetworks(o.Networks)
	sp.overridePorts(o)
}

// overrideEnv replaces variables and adds new ones. A key without a value stays
// as such: it tells the engine to hide the variable, which the image has, too.
func overrideEnv(env, changes []string) []string {
	result := slices.Clone(env)
	for _, change := range changes {
		key, _, _ := strings.Cut(change, "=")
		at := slices.IndexFunc(result, func(entry string) bool { return entry == key || strings.HasPrefix(entry, key+"=") })
		if at < 0 {
			result = append(result, change)
		} else {
			result[at] = change
		}
	}
	return result
}

// overrideResources sets limits. A swap limit that only followed from the
// captured memory limit, or that the new one does not fit, is left to the engine.
func (sp *spec) overrideResources(o RestoreOptions) {
	r := &sp.host.Resources
	if o.Memory > 0 {
		if r.MemorySwap == 2*r.Memory || r.MemorySwap >= 0 && r.MemorySwap < o.Memory {
			r.MemorySwap = 0
		}
		r.MemoryReservation = min(r.MemoryReservation, o.Memory)
		r.Memory = o.Memory
	}
	if o.NanoCPUs > 0 {
		r.NanoCPUs, r.CPUQuota, r.CPUPeriod = o.NanoCPUs, 0, 0
	}
}

func (sp *spec) overrideNetworks(names []string) {
	if len(names) == 0 {
		return
	}
	sp.host.NetworkMode = container.NetworkMode(names[0])
	sp.endpoints = map[string]*network.EndpointSettings{}
	if mode := sp.host.NetworkMode; mode.IsUserDefined() || mode.IsBridge() {
		for _, name := range names {
			sp.endpoints[name] = &network.EndpointSettings{}
		}
	}
	sp.keepNamespaceRules()
}
