package runconfig

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// FreeTakenPorts lets the engine choose another host port wherever one is taken, and returns a step
// for each. held are the ports that containers hold. The container ports in named stay as the user
// asked.
func (sp *Spec) FreeTakenPorts(held map[HostPort]string, named nat.PortMap) plan.Plan {
	return sp.replacePorts(named, func(port nat.Port, b nat.PortBinding) string { return takenBinding(port, b, held) })
}

// takenBinding says by whom the host port of a binding is taken, or "". From a range the engine
// chooses, so there all ports must be held.
func takenBinding(port nat.Port, b nat.PortBinding, held map[HostPort]string) string {
	first, last, err := nat.ParsePortRangeToInt(b.HostPort)
	if err != nil || first == 0 {
		return "" // chosen by the engine
	}
	var owners []string
	for number := first; number <= last; number++ {
		owner := portOwner(HostPort{parseIP(b.HostIP), uint16(number), port.Proto()}, held)
		if owner == "" {
			return ""
		}
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	return "taken by " + strings.Join(slices.Compact(owners), ", ")
}

// portOwner returns the name of the container that holds a port, or "".
func portOwner(wanted HostPort, held map[HostPort]string) string {
	for port, owner := range held {
		if port.Holds(wanted) {
			return owner
		}
	}
	return ""
}

// replacePorts lets the engine choose another host port wherever taken returns a reason. It leaves
// out the container ports in named.
func (sp *Spec) replacePorts(named nat.PortMap, taken func(nat.Port, nat.PortBinding) string) plan.Plan {
	var steps plan.Plan
	for _, port := range slices.Sorted(maps.Keys(sp.Host.PortBindings)) {
		if _, keep := named[port]; keep {
			continue
		}
		bindings := slices.Clone(sp.Host.PortBindings[port])
		for i, b := range bindings {
			why := taken(port, b)
			if why == "" {
				continue
			}
			bindings[i].HostPort = ""
			steps = append(steps, plan.Step{Op: plan.OpReplacePort, Target: b.HostPort + plan.PortFor + string(port), Reason: why})
		}
		sp.Host.PortBindings[port] = bindings
	}
	return steps
}

// ChosenPorts returns the host ports on which the engine publishes a container's port and that
// nobody asked for.
func ChosenPorts(c container.InspectResponse, port nat.Port) []string {
	if c.NetworkSettings == nil || c.HostConfig == nil {
		return nil
	}
	var chosen []string
	for _, b := range c.NetworkSettings.Ports[port] {
		asked := slices.ContainsFunc(c.HostConfig.PortBindings[port], func(asked nat.PortBinding) bool { return asked.HostPort == b.HostPort })
		if !asked && !slices.Contains(chosen, b.HostPort) {
			chosen = append(chosen, b.HostPort)
		}
	}
	return chosen
}

// portInError finds the host port in the engine's messages about a port that it cannot bind: "Bind
// for 0.0.0.0:8080 failed: port is already allocated", "listen tcp4 0.0.0.0:8080: bind: address
// already in use".
var portInError = regexp.MustCompile(`:(\d{1,5})\b`)

// FreeFailedPort lets the engine choose another host port for the one because of which a start
// failed with err, unless it is in named. It returns no steps if the start failed for another
// reason. Of a range the engine only tells the port that it tried last.
func (sp *Spec) FreeFailedPort(err error, named nat.PortMap) plan.Plan {
	message := err.Error()
	noneOfRange := strings.Contains(message, "all ports are allocated")
	if !noneOfRange && !strings.Contains(message, "port is already allocated") && !strings.Contains(message, "address already in use") {
		return nil
	}
	failed := map[int]bool{}
	for _, match := range portInError.FindAllStringSubmatch(message, -1) {
		if number, err := strconv.Atoi(match[1]); err == nil && number > 0 {
			failed[number] = true
		}
	}
	replace := func(matches func(first, last int) bool) plan.Plan {
		return sp.replacePorts(named, func(_ nat.Port, b nat.PortBinding) string {
			first, last, err := nat.ParsePortRangeToInt(b.HostPort)
			if err != nil || first == 0 || !matches(first, last) {
				return ""
			}
			return "taken by another program on the host"
		})
	}
	if steps := replace(func(first, last int) bool { return first == last && failed[first] }); len(steps) > 0 {
		return steps
	}
	return replace(func(first, last int) bool {
		return first < last && (noneOfRange || anyWithin(failed, first, last))
	})
}

func anyWithin(ports map[int]bool, first, last int) bool {
	for port := range ports {
		if first <= port && port <= last {
			return true
		}
	}
	return false
}
