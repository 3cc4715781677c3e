package snapshot

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"golang.org/x/sync/errgroup"
)

// portProblems finds ports that another container holds, and that must stay what
// they are: in place all of them.
func (sp *spec) portProblems(around surroundings) []plan.Problem {
	var problems []plan.Problem
	probe := spec{host: sp.host}
	probe.host.PortBindings = clonePorts(sp.host.PortBindings)
	for _, step := range probe.freeTakenPorts(heldPorts(around.containers), nil) {
		problems = append(problems, plan.Problem{
			Kind: plan.ProblemPortTaken, Subject: step.Target, Text: fmt.Sprintf("port %s is %s", step.Target, step.Reason),
		})
	}
	return problems
}

// addressProblems finds fixed addresses that another container has, or that the
// network does not have any more.
func (sp *spec) addressProblems(around surroundings) []plan.Problem {
	var problems []plan.Problem
	for _, name := range slices.Sorted(maps.Keys(sp.endpoints)) {
		for _, address := range fixedAddresses(sp.endpoints[name]) {
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

// fixedAddresses are those that the user chose.
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

// addressTaken tells why an address cannot be had, or nothing.
func (s surroundings) addressTaken(networkName string, address netip.Addr) string {
	n := s.network(networkName)
	if n == nil {
		return "" // a problem of its own
	}
	inside := slices.ContainsFunc(n.IPAM.Config, func(c network.IPAMConfig) bool {
		subnet, err := netip.ParsePrefix(c.Subnet)
		return err == nil && subnet.Contains(address)
	})
	if !inside {
		return "in none of its subnets"
	}
	for _, c := range s.containers {
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

// dependents are containers that live in a namespace of the old one. They hold
// on to its ID, and would be left with nothing when it goes. A list of containers
// tells only of their networks, so they are inspected.
func (e *Engine) dependents(ctx context.Context, old *container.InspectResponse, around surroundings) ([]plan.Problem, error) {
	if old == nil {
		return nil, nil
	}
	containers := without(around.containers, old)
	found := make([]*plan.Problem, len(containers))
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(dockerop.SideBySide)
	for i, c := range containers {
		calls.Go(func() error {
			dependent, _, err := e.docker.ContainerInspectWithRaw(ctx, c.ID, false)
			if err == nil {
				found[i] = dependence(dependent, *old)
			}
			if cerrdefs.IsNotFound(err) {
				return nil
			}
			return dockerop.Describe(err, "inspect container "+dockerop.SummaryName(c))
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	var problems []plan.Problem
	for _, p := range found {
		if p != nil {
			problems = append(problems, *p)
		}
	}
	return problems, nil
}

// dependence says what a container shares with the old one, if it does.
func dependence(c, old container.InspectResponse) *plan.Problem {
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
		Kind: plan.ProblemDependent, Subject: dockerop.ContainerName(c),
		Text: fmt.Sprintf("container %s lives in the %s namespace of %s, which will be another container", dockerop.ContainerName(c), strings.Join(shared, ", "), dockerop.ContainerName(old)),
	}
}
