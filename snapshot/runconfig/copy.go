package runconfig

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// ForCopy turns a captured configuration into that of a new container beside the original. The copy
// must take none of the original's traffic, so it has no aliases, no fixed addresses or MAC, and only the labels of that
// choice. ForCopy returns what the user has to know.
func (sp *Spec) ForCopy(s catalog.Snapshot, choice CopyLabels) plan.Plan {
	sp.Config.Image = s.Source()
	sp.Host.ContainerIDFile = ""
	sp.copyHostname()
	sp.copyLabels(s, choice)
	notes := sp.copyEndpoints()
	sp.Host.Links = createLinks(sp.Host.Links)
	sp.volumesFromAsMounts(s.Mounts)
	sp.keepNamespaceRules()
	return notes
}

// copyHostname drops a host name that an engine chose, and the MAC address.
func (sp *Spec) copyHostname() {
	if sp.defaultHostname {
		sp.Config.Hostname = ""
	}
	sp.Config.MacAddress = "" //nolint:staticcheck // SA1019: deprecated, but engines before 25 read it.
}

// copyLabels keeps the labels of that choice, and adds those that say which snapshot the copy was made from.
func (sp *Spec) copyLabels(s catalog.Snapshot, choice CopyLabels) {
	own := map[string]string{}
	maps.Copy(own, withoutActing(sp.Config.Labels, choice))
	if choice != LabelsAll {
		optOutOfTraefik(own, sp.Config.Labels)
	}
	own[labels.KeyRestoredFrom] = string(s.ID)
	own[labels.KeyCopyOf] = string(s.ID)
	sp.Config.Labels = own
}

// volumesFromAsMounts mounts by name the volumes that came from another container. That one may be
// gone, or have other volumes by now.
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
		if source == "" || configured[path.Clean(m.Destination)] {
			continue
		}
		bind := bindSpec{Source: source, Destination: m.Destination}
		if !m.RW {
			bind = bind.with("ro")
		}
		sp.Host.Binds = append(sp.Host.Binds, bind.String())
	}
}

// Destinations returns the clean paths of the mount points that the configuration itself names.
func (sp *Spec) Destinations() map[string]bool {
	found := map[string]bool{}
	for destination := range sp.Config.Volumes {
		found[path.Clean(destination)] = true
	}
	for _, text := range sp.Host.Binds {
		if b, ok := parseBind(text); ok {
			found[b.Destination] = true
		}
	}
	for _, m := range sp.Host.Mounts {
		found[path.Clean(m.Target)] = true
	}
	return found
}

// keepNamespaceRules drops what the engine reports of a container that shares a namespace, but
// refuses in a create call.
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

// Override applies what the user wants to be different. notes are about the captured networks;
// Override returns the notes that still apply.
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

// overrideEnv replaces variables and adds new ones. A key without a value stays in the list: the
// engine then hides the variable, which the image has as well.
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

// overrideResources sets limits. If the captured swap limit only followed from the memory limit, or
// does not fit the new one, the engine chooses it.
func (sp *Spec) overrideResources(o RestoreOptions) {
	r := &sp.Host.Resources
	if o.Memory != nil {
		memory := *o.Memory
		if memory == 0 || r.MemorySwap == 2*r.Memory || r.MemorySwap >= 0 && r.MemorySwap < memory {
			r.MemorySwap = 0 // without a memory limit, the engine sets none for swap
		}
		r.MemoryReservation = min(r.MemoryReservation, memory)
		r.Memory = memory
	}
	if o.NanoCPUs != nil {
		r.NanoCPUs, r.CPUQuota, r.CPUPeriod = *o.NanoCPUs, 0, 0
	}
}
