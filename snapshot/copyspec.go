package snapshot

import (
	"maps"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// forCopy turns a captured configuration into that of a new container which
// lives beside the original and takes none of its traffic: no aliases, fixed
// addresses or MAC, no Compose labels. It returns what the user has to know of.
func (sp *spec) forCopy(s catalog.Snapshot) plan.Plan {
	sp.config.Image = s.Ref()
	sp.host.ContainerIDFile = ""
	sp.copyHostname(s.Container.ID)
	sp.copyLabels(s)
	notes := sp.copyEndpoints()
	sp.host.Links = createLinks(sp.host.Links)
	sp.volumesFromAsMounts(s.Mounts)
	sp.keepNamespaceRules()
	return notes
}

// copyHostname drops a hostname that only came from the original's ID.
func (sp *spec) copyHostname(originalID string) {
	if len(originalID) >= dockerop.ShortID && sp.config.Hostname == originalID[:dockerop.ShortID] {
		sp.config.Hostname = ""
	}
	sp.config.MacAddress = "" //nolint:staticcheck // SA1019: deprecated, but engines before 25 read it.
}

// copyLabels leaves off Compose's labels, and says what the copy was made from.
func (sp *spec) copyLabels(s catalog.Snapshot) {
	own := map[string]string{}
	for key, value := range sp.config.Labels {
		if !strings.HasPrefix(key, catalog.ComposePrefix) {
			own[key] = value
		}
	}
	own[labels.KeyRestoredFrom] = string(s.ID)
	sp.config.Labels = own
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
		bind := bindSpec{source: source, destination: m.Destination}
		if !m.RW {
			bind = bind.with("ro")
		}
		sp.host.Binds = append(sp.host.Binds, bind.String())
	}
}

// destinations are the mount points that the configuration itself names.
func (sp *spec) destinations() map[string]bool {
	found := map[string]bool{}
	for destination := range sp.config.Volumes {
		found[destination] = true
	}
	for _, text := range sp.host.Binds {
		if b, ok := parseBind(text); ok {
			found[b.destination] = true
		}
	}
	for _, m := range sp.host.Mounts {
		found[m.Target] = true
	}
	return found
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

// override applies what the user asked to be different. It is given notes about
// the captured networks, and returns those that then hold.
func (sp *spec) override(o RestoreOptions, notes plan.Plan) plan.Plan {
	sp.config.Env = overrideEnv(sp.config.Env, o.Env)
	maps.Copy(sp.config.Labels, o.Labels)
	sp.overrideResources(o)
	if len(o.Networks) > 0 {
		notes = sp.overrideNetworks(o.Networks)
	}
	sp.overridePorts(o)
	return notes
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
	if o.Memory != nil {
		memory := *o.Memory
		if memory == 0 || r.MemorySwap == 2*r.Memory || r.MemorySwap >= 0 && r.MemorySwap < memory {
			r.MemorySwap = 0 // without a limit, the engine takes none for swap
		}
		r.MemoryReservation = min(r.MemoryReservation, memory)
		r.Memory = memory
	}
	if o.NanoCPUs != nil {
		r.NanoCPUs, r.CPUQuota, r.CPUPeriod = *o.NanoCPUs, 0, 0
	}
}
