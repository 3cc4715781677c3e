package runconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// PortProblems returns the ports of the configuration that other containers hold, and that must not
// be replaced.
func (sp *Spec) PortProblems(around Surroundings) []plan.Problem {
	var problems []plan.Problem
	probe := Spec{Host: sp.Host}
	probe.Host.PortBindings = clonePorts(sp.Host.PortBindings)
	for _, step := range probe.FreeTakenPorts(HeldPorts(around.Containers), nil) {
		problems = append(problems, plan.Problem{
			Kind: plan.ProblemPortTaken, Subject: step.Target, Text: fmt.Sprintf("port %s is %s", step.Target, step.Reason),
		})
	}
	return problems
}

// AddressProblems returns the fixed addresses that other containers have, or that are not in the
// network any more.
func (sp *Spec) AddressProblems(around Surroundings) []plan.Problem {
	var problems []plan.Problem
	for _, name := range slices.Sorted(maps.Keys(sp.Endpoints)) {
		for _, address := range fixedAddresses(sp.Endpoints[name]) {
			why := around.addressTaken(name, address)
			if why != "" {
				problems = append(problems, plan.Problem{
					Kind: plan.ProblemAddressTaken, Subject: address.String(), Text: fmt.Sprintf("address %s in network %s is %s", address, name, why),
				})
			}
		}
	}
	return problems
}

// fixedAddresses returns the addresses that the user chose.
func fixedAddresses(e *network.EndpointSettings) []netip.Addr {
	if e == nil || e.IPAMConfig == nil {
		return nil
	}
	var addresses []netip.Addr
	for _, text := range []string{e.IPAMConfig.IPv4Address, e.IPAMConfig.IPv6Address} {
		if address := parseIP(text); address.IsValid() {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// addressTaken says why an address cannot be had, or "".
func (s Surroundings) addressTaken(networkName string, address netip.Addr) string {
	n := s.network(networkName)
	if n == nil {
		return "" // Problems reports that
	}
	inside := slices.ContainsFunc(n.IPAM.Config, func(c network.IPAMConfig) bool {
		subnet, err := netip.ParsePrefix(c.Subnet)
		return err == nil && subnet.Contains(address)
	})
	if !inside {
		return "in none of its subnets"
	}
	if use := reservedFor(n.IPAM.Config, address); use != "" {
		return use
	}
	for _, c := range s.Containers {
		if c.NetworkSettings == nil {
			continue
		}
		e := c.NetworkSettings.Networks[n.Name]
		if e != nil && (parseIP(e.IPAddress) == address || parseIP(e.GlobalIPv6Address) == address) {
			return "held by container " + dockerop.SummaryName(c)
		}
	}
	return ""
}

// maxReserving are the bits of the smallest IPv4 subnet that has an address of its own, and one for broadcasts.
const maxReserving = 30

// reservedFor returns the use of an address that a network gives to no container, or "".
func reservedFor(configs []network.IPAMConfig, address netip.Addr) string {
	for _, c := range configs {
		subnet, err := netip.ParsePrefix(c.Subnet)
		switch {
		case parseIP(c.Gateway) == address:
			return "its gateway"
		case slices.ContainsFunc(slices.Collect(maps.Values(c.AuxAddress)), func(aux string) bool { return parseIP(aux) == address }):
			return "reserved by the network's settings"
		case err != nil || address.Is6() || subnet.Bits() > maxReserving:
		case subnet.Masked().Addr() == address:
			return "that of the network itself"
		case subnet.Contains(address) && !subnet.Contains(address.Next()):
			return "its broadcast address"
		}
	}
	return ""
}

// Dependence returns a problem if container c uses a namespace of old, and else nil.
func Dependence(c, old container.InspectResponse) *plan.Problem {
	return dependence(c, old, plan.ProblemDependent, "replaced")
}

// DependenceOnStop is the same if the old container only stops, and is started again: one that does not run does
// not lose anything by that.
func DependenceOnStop(c, old container.InspectResponse) *plan.Problem {
	if !c.State.Running {
		return nil
	}
	return dependence(c, old, plan.ProblemNeedsRunning, "stopped")
}

func dependence(c, old container.InspectResponse, kind plan.ProblemKind, becomes string) *plan.Problem {
	var shared []string
	for _, namespace := range []struct{ name, container string }{
		{"network", c.HostConfig.NetworkMode.ConnectedContainer()},
		{"ipc", c.HostConfig.IpcMode.Container()},
		{"pid", c.HostConfig.PidMode.Container()},
	} {
		if namespace.container == old.ID || namespace.container == dockerop.ContainerName(old) {
			shared = append(shared, namespace.name)
		}
	}
	if len(shared) == 0 {
		return nil
	}
	return &plan.Problem{
		Kind: kind, Subject: dockerop.ContainerName(c),
		Text: fmt.Sprintf("container %s uses the %s namespace of %s, which will be %s", dockerop.ContainerName(c), strings.Join(shared, ", "), dockerop.ContainerName(old), becomes),
	}
}
