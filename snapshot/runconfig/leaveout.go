package runconfig

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// LeaveOut removes from the configuration what the engine does not have. It returns a step for
// each, and the problems that cannot be solved like that.
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
			b, ok := parseBind(text)
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

// dropNetwork leaves the container in its other networks, or in none.
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

// throttles returns the lists of limits on the I/O of devices. Weights are in another list.
func (sp *Spec) throttles() []*[]*blkiodev.ThrottleDevice {
	h := &sp.Host
	return []*[]*blkiodev.ThrottleDevice{&h.BlkioDeviceReadBps, &h.BlkioDeviceWriteBps, &h.BlkioDeviceReadIOps, &h.BlkioDeviceWriteIOps}
}

// limitedDevices returns the host's devices whose I/O is limited. The engine looks for them when it
// starts the container.
func (sp *Spec) limitedDevices() []string {
	var paths []string
	for _, d := range sp.Host.BlkioWeightDevice {
		if d != nil {
			paths = append(paths, d.Path)
		}
	}
	for _, list := range sp.throttles() {
		for _, d := range *list {
			if d != nil {
				paths = append(paths, d.Path)
			}
		}
	}
	return paths
}

// dropLimits removes every limit on a device.
func (sp *Spec) dropLimits(path string) {
	sp.Host.BlkioWeightDevice = slices.DeleteFunc(sp.Host.BlkioWeightDevice, func(d *blkiodev.WeightDevice) bool { return d != nil && d.Path == path })
	for _, list := range sp.throttles() {
		*list = slices.DeleteFunc(*list, func(d *blkiodev.ThrottleDevice) bool { return d != nil && d.Path == path })
	}
}
