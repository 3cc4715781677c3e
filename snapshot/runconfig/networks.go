package runconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// copyEndpoints keeps what was configured for each network, and drops what would make the copy
// answer for the original. It returns notes for the user.
func (sp *Spec) copyEndpoints() plan.Plan {
	return sp.mapEndpoints(func(e *network.EndpointSettings) *network.EndpointSettings {
		return &network.EndpointSettings{Links: e.Links, DriverOpts: e.DriverOpts, GwPriority: e.GwPriority}
	})
}

// keepEndpoints keeps everything that was configured for each network, and drops what the engine
// only reports.
func (sp *Spec) keepEndpoints(originalID string) plan.Plan {
	isOwnID := func(alias string) bool { return len(alias) >= dockerop.ShortID && strings.HasPrefix(originalID, alias) }
	// For the main network, Config.MacAddress tells whether the user chose the address.
	if main := sp.mainEndpoint(); main != nil && sp.Config.MacAddress == "" { //nolint:staticcheck // SA1019: deprecated to set, but only it tells
		main.MacAddress = ""
	}
	return sp.mapEndpoints(func(e *network.EndpointSettings) *network.EndpointSettings {
		return &network.EndpointSettings{
			IPAMConfig: e.IPAMConfig, Links: e.Links, DriverOpts: e.DriverOpts, GwPriority: e.GwPriority,
			MacAddress: e.MacAddress, Aliases: slices.DeleteFunc(slices.Clone(e.Aliases), isOwnID),
		}
	})
}

// mapEndpoints replaces each endpoint by what keep makes of it. It returns a note if the container
// was connected to no network.
func (sp *Spec) mapEndpoints(keep func(*network.EndpointSettings) *network.EndpointSettings) plan.Plan {
	mode := sp.Host.NetworkMode
	if mode.IsHost() || mode.IsContainer() {
		sp.Endpoints = nil
		return nil
	}
	known := sp.Endpoints != nil
	left := known && sp.mainEndpoint() == nil
	kept := map[string]*network.EndpointSettings{}
	for name, e := range sp.Endpoints {
		if name != network.NetworkNone {
			kept[name] = keep(e)
		}
	}
	sp.Endpoints = kept
	if left {
		return sp.leaveMainNetwork()
	}
	return nil
}

// leaveMainNetwork makes the network mode name a network that the container was connected to. After
// docker network disconnect the mode still names the network that was left, and a new container
// would join that again.
func (sp *Spec) leaveMainNetwork() plan.Plan {
	left := string(sp.Host.NetworkMode)
	sp.Config.MacAddress = "" //nolint:staticcheck // SA1019: deprecated, but engines before 25 read it; it was the address there.
	if others := sp.NetworkNames(); len(others) > 0 {
		sp.Host.NetworkMode = container.NetworkMode(others[0])
		return nil
	}
	sp.Host.NetworkMode = network.NetworkNone
	if left == network.NetworkNone {
		return nil
	}
	return plan.Plan{{Op: plan.OpLeaveOut, Target: "network " + left, Reason: "the container was connected to no network when it was captured"}}
}

// mainEndpoint returns the endpoint in the network that the network mode names, or nil.
func (sp *Spec) mainEndpoint() *network.EndpointSettings {
	if main := sp.Endpoints[string(sp.Host.NetworkMode)]; main != nil || !sp.Host.NetworkMode.IsDefault() {
		return main
	}
	return sp.Endpoints[network.NetworkBridge]
}

// createLinks turns links as the engine reports them, /other:/self/alias, into links as its create
// call takes them, other:alias.
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

// overrideNetworks joins these networks and no others. The links go to the first of them that users
// made: there, links are aliases, which the engine resolves when somebody asks for them. It returns
// notes about links that cannot work.
func (sp *Spec) overrideNetworks(names []string) plan.Plan {
	links := sp.allLinks()
	sp.Host.NetworkMode = container.NetworkMode(names[0])
	sp.Endpoints = map[string]*network.EndpointSettings{}
	if mode := sp.Host.NetworkMode; mode.IsUserDefined() || mode.IsBridge() {
		for _, name := range names {
			sp.Endpoints[name] = &network.EndpointSettings{}
		}
	}
	at := slices.IndexFunc(names, func(name string) bool { return sp.Endpoints[name] != nil && isUserDefined(name) })
	if at >= 0 {
		sp.Endpoints[names[at]].Links = links
		sp.Host.Links, links = nil, nil
	}
	if mode := sp.Host.NetworkMode; !mode.IsBridge() && !mode.IsDefault() {
		sp.Host.Links = nil
	}
	sp.keepNamespaceRules()
	return sp.lostLinks(links)
}

// allLinks returns the links of the default bridge and of all networks that users made.
func (sp *Spec) allLinks() []string {
	links := slices.Clone(sp.Host.Links)
	for _, name := range slices.Sorted(maps.Keys(sp.Endpoints)) {
		for _, link := range sp.Endpoints[name].Links {
			if !slices.Contains(links, link) {
				links = append(links, link)
			}
		}
	}
	return links
}

// lostLinks returns notes about the links that the configuration does not have any more.
func (sp *Spec) lostLinks(links []string) plan.Plan {
	var notes plan.Plan
	for _, link := range links {
		if !slices.Contains(sp.Host.Links, link) {
			notes = append(notes, plan.Step{Op: plan.OpLeaveOut, Target: "link " + link, Reason: fmt.Sprintf("it cannot work in network %s", sp.Host.NetworkMode)})
		}
	}
	return notes
}

func isUserDefined(name string) bool { return container.NetworkMode(name).IsUserDefined() }

// YieldHostname drops a hostname that the copy would share with the original: in a network that
// users made, the engine resolves it as a DNS name. The original is the container with its ID, or
// with its name, which a restore in place keeps.
func (sp *Spec) YieldHostname(original labels.Container, around Surroundings) plan.Plan {
	if sp.Config.Hostname == "" {
		return nil
	}
	for _, name := range sp.NetworkNames() {
		n := around.network(name)
		if n == nil || !isUserDefined(n.Name) {
			continue
		}
		for _, c := range []*container.Summary{around.Container(original.ID), around.Container(original.Name)} {
			if c == nil || c.NetworkSettings == nil || c.NetworkSettings.Networks[n.Name] == nil {
				continue
			}
			hostname := sp.Config.Hostname
			sp.Config.Hostname = ""
			return plan.Plan{{Op: plan.OpLeaveOut, Target: "hostname " + hostname, Reason: fmt.Sprintf("container %s answers to it in network %s", dockerop.SummaryName(*c), n.Name)}}
		}
	}
	return nil
}

// NetworkNames returns the networks to join. The first is the one that the network mode names.
func (sp *Spec) NetworkNames() []string {
	names := slices.Sorted(maps.Keys(sp.Endpoints))
	mode := string(sp.Host.NetworkMode)
	at := slices.IndexFunc(names, func(name string) bool {
		return name == mode || mode == "default" && name == "bridge"
	})
	if at > 0 {
		first := names[at]
		names = slices.Insert(slices.Delete(names, at, at+1), 0, first)
	}
	return names
}
