package runconfig

import (
	"net/netip"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// overridePorts publishes what the user asked for. Other ports stay as captured.
func (sp *Spec) overridePorts(o RestoreOptions) {
	if sp.Host.PortBindings == nil && len(o.Publish) > 0 {
		sp.Host.PortBindings = nat.PortMap{}
	}
	if sp.Config.ExposedPorts == nil && len(o.Publish) > 0 {
		sp.Config.ExposedPorts = nat.PortSet{}
	}
	if o.PublishAll {
		sp.Host.PublishAllPorts = true
	}
	if o.PublishAll || o.FreePorts {
		for _, bindings := range sp.Host.PortBindings {
			for i := range bindings {
				bindings[i].HostPort = ""
			}
		}
	}
	for port, bindings := range o.Publish {
		sp.Host.PortBindings[port] = bindings
		sp.Config.ExposedPorts[port] = struct{}{}
	}
}

func clonePorts(ports nat.PortMap) nat.PortMap {
	cloned := nat.PortMap{}
	for port, bindings := range ports {
		cloned[port] = slices.Clone(bindings)
	}
	return cloned
}

// HostPort is a port of the engine's host that a container holds.
type HostPort struct {
	IP    netip.Addr // invalid or unspecified: every address
	Port  uint16
	Proto string
}

// Holds tells whether other cannot be bound while h is.
func (h HostPort) Holds(other HostPort) bool {
	if h.Port != other.Port || h.Proto != other.Proto {
		return false
	}
	return h.IP == other.IP || isAny(h.IP) || isAny(other.IP)
}

func isAny(ip netip.Addr) bool { return !ip.IsValid() || ip.IsUnspecified() }

// parseIP reads an IP address, an IPv4 address in IPv6 form as IPv4. It returns the invalid address
// for anything else.
func parseIP(s string) netip.Addr {
	ip, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return ip.Unmap()
}

// HeldPorts returns the ports that running containers hold, with the names of the containers.
func HeldPorts(containers []container.Summary) map[HostPort]string {
	held := map[HostPort]string{}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.PublicPort != 0 {
				held[HostPort{parseIP(p.IP), p.PublicPort, p.Type}] = dockerop.SummaryName(c)
			}
		}
	}
	return held
}
