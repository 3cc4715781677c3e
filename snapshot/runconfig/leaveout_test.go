package runconfig

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

func TestLeaveOutTakesOutEachKind(t *testing.T) {
	tests := map[string]struct {
		problem plan.Problem
		check   func(*Spec) bool
	}{
		"network":         {plan.Problem{Kind: plan.ProblemNoNetwork, Subject: "back"}, func(sp *Spec) bool { return sp.Endpoints["back"] == nil && sp.Host.NetworkMode == "front" }},
		"network of mode": {plan.Problem{Kind: plan.ProblemNoNetwork, Subject: "front"}, func(sp *Spec) bool { return sp.Endpoints["front"] == nil && sp.Host.NetworkMode == "back" }},
		"bind source": {plan.Problem{Kind: plan.ProblemNoBindSource, Subject: "/srv"}, func(sp *Spec) bool {
			return slices.Equal(sp.Host.Binds, []string{"named:/c", "/etc:/e"}) && len(sp.Host.Mounts) == 2
		}},
		"device": {plan.Problem{Kind: plan.ProblemNoDevice, Subject: "/dev/kvm"}, func(sp *Spec) bool {
			return len(sp.Host.Devices) == 1 && len(sp.Host.BlkioDeviceWriteIOps) == 1
		}},
		"limited device": {plan.Problem{Kind: plan.ProblemNoDevice, Subject: "/dev/sda"}, func(sp *Spec) bool {
			left := append(sp.limitedDevices(), sp.Host.Devices[0].PathOnHost)
			return slices.Equal(left, []string{"/dev/zero", "/dev/sdb", "/dev/sdc", "/dev/sdd", "/dev/kvm", "/dev/kvm"})
		}},
		"runtime": {plan.Problem{Kind: plan.ProblemNoRuntime, Subject: "kata"}, func(sp *Spec) bool { return sp.Host.Runtime == "" }},
		"volume":  {plan.Problem{Kind: plan.ProblemNoVolume, Subject: "named"}, func(sp *Spec) bool { return len(sp.Host.Binds) == 4 }},
		"peer":    {plan.Problem{Kind: plan.ProblemNoContainer, Subject: "peer"}, func(sp *Spec) bool { return sp.Host.IpcMode == "" && sp.Host.PidMode == "" && len(sp.Host.Links) == 1 }},
		"link":    {plan.Problem{Kind: plan.ProblemNoContainer, Subject: "db"}, func(sp *Spec) bool { return len(sp.Host.Links) == 0 && sp.Host.IpcMode != "" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := needy()
			test.problem.Text = "why"
			steps, rest := sp.LeaveOut([]plan.Problem{test.problem})
			assert.Equal(t, len(rest), 0)
			assert.Equal(t, steps.String(), "leave out "+test.problem.Subject+" (why)\n")
			assert.Assert(t, test.check(sp), "%+v", sp)
		})
	}
}

func TestLeaveOutOfTheLastNetworkLeavesNone(t *testing.T) {
	sp := &Spec{Host: container.HostConfig{NetworkMode: "x"}, Endpoints: map[string]*network.EndpointSettings{"x": {}}}
	sp.LeaveOut([]plan.Problem{{Kind: plan.ProblemNoNetwork, Subject: "x"}})
	assert.Equal(t, string(sp.Host.NetworkMode), "none")

	shared := &Spec{Host: container.HostConfig{NetworkMode: "container:peer"}}
	shared.LeaveOut([]plan.Problem{{Kind: plan.ProblemNoContainer, Subject: "peer"}})
	assert.Equal(t, string(shared.Host.NetworkMode), "none")
}

func TestLeaveOutKeepsWhatItCannotDoWithout(t *testing.T) {
	for _, kind := range []plan.ProblemKind{plan.ProblemNameTaken, plan.ProblemHostAccess, plan.ProblemPortTaken, plan.ProblemVolumeInUse, plan.ProblemDependent} {
		steps, rest := needy().LeaveOut([]plan.Problem{{Kind: kind, Subject: "x"}})
		assert.Equal(t, len(steps), 0)
		assert.Equal(t, len(rest), 1, kind)
	}
}
