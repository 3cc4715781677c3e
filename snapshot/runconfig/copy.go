package runconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// ForCopy turns a captured configuration into that of a new container which
// lives beside the original and takes none of its traffic: no aliases, fixed
// addresses or MAC, no Compose labels. It returns what the user has to know of.
func (sp *Spec) ForCopy(s catalog.Snapshot) plan.Plan {
	sp.Config.Image = s.Ref()
	sp.Host.ContainerIDFile = ""
	sp.copyHostname(s.Container.ID)
	sp.copyLabels(s)
	notes := sp.copyEndpoints()
	sp.Host.Links = createLinks(sp.Host.Links)
	sp.volumesFromAsMounts(s.Mounts)
	sp.keepNamespaceRules()
	return notes
}

// copyHostname drops a hostname that only came from the original's ID.
func (sp *Spec) copyHostname(originalID string) {
	if len(originalID) >= dockerop.ShortID && sp.Config.Hostname == originalID[:dockerop.ShortID] {
		sp.Config.Hostname = ""
	}
	sp.Config.MacAddress = "" //nolint:staticcheck // SA1019: deprecated, but engines before 25 read it.
}

// copyLabels leaves off Compose's labels, and says what the copy was made from.
func (sp *Spec) copyLabels(s catalog.Snapshot) {
	own := map[string]string{}
	for key, value := range sp.Config.Labels {
		if !strings.HasPrefix(key, catalog.ComposePrefix) {
			own[key] = value
		}
	}
	own[labels.KeyRestoredFrom] = string(s.ID)
	sp.Config.Labels = own
}

// volumesFromAsMounts names the volumes that came from another container, which
// may be gone or have others by now.
func (sp *Spec) volumesFromAsMounts(mounts []labels.Mount) {
	if len(sp.Host.VolumesFrom) == 0 {
		return
	}
	sp.Host.VolumesFrom = nil
	configured := sp.Destinations()
	for _, m := range mounts {
		source := m.Name
		if m.Type == "bind" {
			source = m.Source
		}
		if source == "" || configured[m.Destination] {
			continue
		}
		bind := bindSpec{Source: source, Destination: m.Destination}
		if !m.RW {
			bind = bind.with("ro")
		}
		sp.Host.Binds = append(sp.Host.Binds, bind.String())
	}
}

// Destinations are the mount points that the configuration itself names.
func (sp *Spec) Destinations() map[string]bool {
	found := map[string]bool{}
	for destination := range sp.Config.Volumes {
		found[destination] = true
	}
	for _, text := range sp.Host.Binds {
		if b, ok := ParseBind(text); ok {
			found[b.Destination] = true
		}
	}
	for _, m := range sp.Host.Mounts {
		found[m.Target] = true
	}
	return found
}

// keepNamespaceRules drops what the engine reports of a container that shares a
// namespace, but refuses to be told when making one.
func (sp *Spec) keepNamespaceRules() {
	if sp.Host.NetworkMode.IsContainer() {
		sp.Config.Hostname, sp.Config.Domainname = "", ""
		sp.Config.ExposedPorts = nil
		sp.Host.PortBindings, sp.Host.PublishAllPorts = nil, false
		sp.Host.DNS, sp.Host.DNSOptions, sp.Host.DNSSearch, sp.Host.ExtraHosts, sp.Host.Links = nil, nil, nil, nil, nil
	}
	if sp.Host.NetworkMode.IsHost() {
		sp.Host.Links = nil
	}
	if sp.Host.UTSMode.IsHost() {
		sp.Config.Hostname, sp.Config.Domainname = "", ""
	}
}

// Override applies what the user asked to be different. It is given notes about
// the captured networks, and returns those that then hold.
func (sp *Spec) Override(o RestoreOptions, notes plan.Plan) plan.Plan {
	sp.Config.Env = overrideEnv(sp.Config.Env, o.Env)
	maps.Copy(sp.Config.Labels, o.Labels)
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
func (sp *Spec) overrideResources(o RestoreOptions) {
	r := &sp.Host.Resources
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
