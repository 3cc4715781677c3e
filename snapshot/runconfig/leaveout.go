package runconfig

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// LeaveOut takes out of the configuration what the engine does not have. What
// it cannot do without stays a problem.
func (sp *Spec) LeaveOut(problems []plan.Problem) (steps plan.Plan, rest []plan.Problem) {
	for _, p := range problems {
		if !sp.drop(p) {
			rest = append(rest, p)
			continue
		}
		steps = append(steps, plan.Step{Op: plan.OpLeaveOut, Target: p.Subject, Reason: p.Text})
	}
	return steps, rest
}

func (sp *Spec) drop(p plan.Problem) bool {
	switch p.Kind {
	case plan.ProblemNoNetwork:
		sp.dropNetwork(p.Subject)
	case plan.ProblemNoBindSource:
		sp.Host.Binds = slices.DeleteFunc(sp.Host.Binds, func(text string) bool {
			b, ok := ParseBind(text)
			return ok && b.Source == p.Subject
		})
		sp.Host.Mounts = slices.DeleteFunc(sp.Host.Mounts, func(m mount.Mount) bool {
			return m.Type == mount.TypeBind && m.Source == p.Subject
		})
	case plan.ProblemNoDevice:
		sp.Host.Devices = slices.DeleteFunc(sp.Host.Devices, func(d container.DeviceMapping) bool { return d.PathOnHost == p.Subject })
		sp.dropLimits(p.Subject)
	case plan.ProblemNoRuntime:
		sp.Host.Runtime = ""
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
func (sp *Spec) dropNetwork(name string) {
	delete(sp.Endpoints, name)
	if string(sp.Host.NetworkMode) != name {
		return
	}
	sp.Host.NetworkMode = network.NetworkNone
	if others := sp.NetworkNames(); len(others) > 0 {
		sp.Host.NetworkMode = container.NetworkMode(others[0])
	}
}

func (sp *Spec) dropPeer(name string) {
	if slices.Contains(sp.volumeSources(), name) {
		sp.volumesFromAsMounts(sp.mounts)
	}
	if sp.Host.NetworkMode.ConnectedContainer() == name {
		sp.Host.NetworkMode = network.NetworkNone
	}
	if sp.Host.IpcMode.Container() == name {
		sp.Host.IpcMode = ""
	}
	if sp.Host.PidMode.Container() == name {
		sp.Host.PidMode = ""
	}
	sp.Host.Links = slices.DeleteFunc(sp.Host.Links, func(link string) bool { return strings.HasPrefix(link, name+":") })
}
