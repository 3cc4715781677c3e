package snapshot

import (
	"net/netip"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// overridePorts publishes what the user asked for. Ports that are not named
// stay as captured.
func (sp *spec) overridePorts(o RestoreOptions) {
	if sp.host.PortBindings == nil && len(o.Publish) > 0 {
		sp.host.PortBindings = nat.PortMap{}
	}
	if sp.config.ExposedPorts == nil && len(o.Publish) > 0 {
		sp.config.ExposedPorts = nat.PortSet{}
	}
	if o.PublishAll {
		sp.host.PublishAllPorts = true
		for _, bindings := range sp.host.PortBindings {
			for i := range bindings {
				bindings[i].HostPort = ""
			}
		}
	}
	for port, bindings := range o.Publish {
		sp.host.PortBindings[port] = bindings
		sp.config.ExposedPorts[port] = struct{}{}
	}
}

func clonePorts(ports nat.PortMap) nat.PortMap {
	cloned := nat.PortMap{}
	for port, bindings := range ports {
		cloned[port] = slices.Clone(bindings)
	}
	return cloned
}

// hostPort is a port of the engine's host that a container holds.
type hostPort struct {
	ip    netip.Addr // unspecified: every address
	port  uint16
	proto string
}

// holds tells whether both cannot be bound at once.
func (h hostPort) holds(other hostPort) bool {
	if h.port != other.port || h.proto != other.proto {
		return false
	}
	return h.ip == other.ip || isAny(h.ip) || isAny(other.ip)
}

func isAny(ip netip.Addr) bool { return !ip.IsValid() || ip.IsUnspecified() }

func parseIP(s string) netip.Addr {
	ip, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return ip.Unmap()
}

// heldPorts maps the ports that running containers hold to their names.
func heldPorts(containers []container.Summary) map[hostPort]string {
	held := map[hostPort]string{}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.PublicPort != 0 {
				held[hostPort{parseIP(p.IP), p.PublicPort, p.Type}] = dockerop.SummaryName(c)
			}
		}
	}
	return held
}
