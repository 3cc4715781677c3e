package snapshot

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// leaveOut takes out of the configuration what the engine does not have. What
// it cannot do without stays a problem.
func (sp *spec) leaveOut(problems []plan.Problem) (steps plan.Plan, rest []plan.Problem) {
	for _, p := range problems {
		if !sp.drop(p) {
			rest = append(rest, p)
			continue
		}
		steps = append(steps, plan.Step{Op: plan.OpLeaveOut, Target: p.Subject, Reason: p.Text})
	}
	return steps, rest
}

func (sp *spec) drop(p plan.Problem) bool {
	switch p.Kind {
	case plan.ProblemNoNetwork:
		sp.dropNetwork(p.Subject)
	case plan.ProblemNoBindSource:
		sp.host.Binds = slices.DeleteFunc(sp.host.Binds, func(text string) bool {
			b, ok := parseBind(text)
			return ok && b.source == p.Subject
		})
		sp.host.Mounts = slices.DeleteFunc(sp.host.Mounts, func(m mount.Mount) bool {
			return m.Type == mount.TypeBind && m.Source == p.Subject
		})
	case plan.ProblemNoDevice:
		sp.host.Devices = slices.DeleteFunc(sp.host.Devices, func(d container.DeviceMapping) bool { return d.PathOnHost == p.Subject })
		sp.dropLimits(p.Subject)
	case plan.ProblemNoRuntime:
		sp.host.Runtime = ""
	case plan.ProblemNoVolume:
		// The engine makes an empty one.
	case plan.ProblemNoContainer:
		sp.dropPeer(p.Subject)
	default:
		return false
	}
	return true
}

// dropNetwork leaves the container on its other networks, or on none.
func (sp *spec) dropNetwork(name string) {
	delete(sp.endpoints, name)
	if string(sp.host.NetworkMode) != name {
		return
	}
	sp.host.NetworkMode = network.NetworkNone
	if others := sp.networkNames(); len(others) > 0 {
		sp.host.NetworkMode = container.NetworkMode(others[0])
	}
}

func (sp *spec) dropPeer(name string) {
	if slices.Contains(sp.volumeSources(), name) {
		sp.volumesFromAsMounts(sp.mounts)
	}
	if sp.host.NetworkMode.ConnectedContainer() == name {
		sp.host.NetworkMode = network.NetworkNone
	}
	if sp.host.IpcMode.Container() == name {
		sp.host.IpcMode = ""
	}
	if sp.host.PidMode.Container() == name {
		sp.host.PidMode = ""
	}
	sp.host.Links = slices.DeleteFunc(sp.host.Links, func(link string) bool { return strings.HasPrefix(link, name+":") })
}
