package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// needy is a configuration that asks for one of everything.
func needy() *spec {
	return &spec{
		host: container.HostConfig{
			NetworkMode: "front", IpcMode: "container:peer", PidMode: "container:peer", Runtime: "kata", Links: []string{"db:database"},
			Binds:  []string{"/srv:/a", "/srv:/b:ro", "named:/c", "/etc:/e"},
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/srv", Target: "/d"}, {Type: mount.TypeBind, Source: "/auto", Target: "/f", BindOptions: &mount.BindOptions{CreateMountpoint: true}}, {Type: mount.TypeVolume, Source: "other", Target: "/g"}},
			Resources: container.Resources{
				Devices: []container.DeviceMapping{
					{PathOnHost: "/dev/kvm", PathInContainer: "/dev/kvm"}, {PathOnHost: "/dev/null", PathInContainer: "/dev/x"},
				},
				BlkioWeightDevice:    []*blkiodev.WeightDevice{{Path: "/dev/sda", Weight: 10}, {Path: "/dev/zero", Weight: 20}},
				BlkioDeviceReadBps:   []*blkiodev.ThrottleDevice{{Path: "/dev/sdb", Rate: 1}, {Path: "/dev/sda", Rate: 1}},
				BlkioDeviceWriteBps:  []*blkiodev.ThrottleDevice{{Path: "/dev/sdc", Rate: 1}},
				BlkioDeviceReadIOps:  []*blkiodev.ThrottleDevice{{Path: "/dev/sdd", Rate: 1}, nil},
				BlkioDeviceWriteIOps: []*blkiodev.ThrottleDevice{{Path: "/dev/sda", Rate: 1}, {Path: "/dev/kvm", Rate: 1}},
			},
		},
		endpoints: map[string]*network.EndpointSettings{"front": {}, "back": {}, "bridge": {}},
	}
}

// bare has nothing of what [needy] asks for, but the bridge and a container of
// the name that the new one is to have.
func bare() surroundings {
	return surroundings{
		networks:   []network.Summary{{Name: "bridge", ID: "1"}},
		containers: []container.Summary{{ID: "abc", Names: []string{"/web"}}},
		noPath:     map[string]bool{"/srv": true, "/dev/kvm": true, "/dev/sda": true, "/dev/sdd": true},
		noVolume:   map[string]bool{"named": true, "other": true},
		info:       system.Info{DefaultRuntime: "runc"},
	}
}

func TestProblemsAreFoundAllAtOnce(t *testing.T) {
	err := &plan.ProblemsError{Problems: bare().problems(needy(), "web")}
	assert.Equal(t, err.Error(), strings.Join([]string{
		"cannot restore:",
		"a container named web exists already",
		"network back does not exist",
		"network front does not exist",
		"device /dev/kvm does not exist on the engine's host",
		"device /dev/sda, for which there is a limit of I/O, does not exist on the engine's host",
		"device /dev/sdd, for which there is a limit of I/O, does not exist on the engine's host",
		"the source of bind mount /srv does not exist on the engine's host",
		"volume named does not exist any more",
		"volume other does not exist any more",
		"runtime kata is not known to the engine",
		"this container has a link to db, which is gone",
		"this container uses the shared memory and the processes of peer, which is gone",
	}, "\n  "))
	assert.Assert(t, cerrdefs.IsFailedPrecondition(err))
}

// When the container is gone whose network was shared, only its ID would be left.
func TestWhoIsGoneIsNamed(t *testing.T) {
	docker := newFakeDocker()
	side := docker.run(t, "side")
	docker.create(t, "web", &container.Config{}, &container.HostConfig{NetworkMode: container.NetworkMode("container:" + side.id)})
	snapshotOf(t, docker, CreateOptions{Container: "web", Name: "one"})
	assert.NilError(t, docker.ContainerRemove(t.Context(), "side", container.RemoveOptions{Force: true}))
	_, err := docker.engine().Restore(t.Context(), RestoreOptions{Snapshot: "web:one"}, nil)
	assert.Error(t, err, "cannot restore:\n  this container uses the network of side, which is gone")
	unnamed := spec{host: container.HostConfig{NetworkMode: container.NetworkMode("container:" + side.id)}}
	assert.Equal(t, unnamed.needs(side.id), "this container uses the network of "+side.id[:dockerop.ShortID])
}

func TestNoProblemsWhereAllIsThere(t *testing.T) {
	all := bare()
	all.noPath, all.noVolume = nil, nil
	all.networks = append(all.networks, network.Summary{Name: "front", ID: "2"}, network.Summary{Name: "back", ID: "3"})
	all.containers = append(all.containers, container.Summary{ID: "def", Names: []string{"/db"}}, container.Summary{ID: "0", Names: []string{"/peer"}})
	all.info.Runtimes = map[string]system.RuntimeWithStatus{"kata": {}}
	assert.Equal(t, len(all.problems(needy(), "copy")), 0)
}

func TestRuntimesThatTheEngineFinds(t *testing.T) {
	s := surroundings{info: system.Info{DefaultRuntime: "crun", Runtimes: map[string]system.RuntimeWithStatus{"runc": {}}}}
	for _, known := range []string{"", "runc", "crun", "io.containerd.runc.v2", "/usr/bin/other"} {
		assert.Assert(t, s.hasRuntime(known), known)
	}
	assert.Assert(t, !s.hasRuntime("kata"))
}

func TestRequiredPathsAndVolumes(t *testing.T) {
	assert.DeepEqual(t, needy().requiredPaths(), []string{
		"/dev/kvm", "/dev/null", "/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd", "/dev/zero", "/etc", "/srv",
	})
	assert.DeepEqual(t, needy().namedVolumes(nil), []string{"named", "other"})
	made := newVolume{}
	made.create.Name = "named"
	assert.DeepEqual(t, needy().namedVolumes([]newVolume{made}), []string{"other"})
}

func TestLeaveOutTakesOutEachKind(t *testing.T) {
	tests := map[string]struct {
		problem plan.Problem
		check   func(*spec) bool
	}{
		"network":         {plan.Problem{Kind: plan.ProblemNoNetwork, Subject: "back"}, func(sp *spec) bool { return sp.endpoints["back"] == nil && sp.host.NetworkMode == "front" }},
		"network of mode": {plan.Problem{Kind: plan.ProblemNoNetwork, Subject: "front"}, func(sp *spec) bool { return sp.endpoints["front"] == nil && sp.host.NetworkMode == "back" }},
		"bind source": {plan.Problem{Kind: plan.ProblemNoBindSource, Subject: "/srv"}, func(sp *spec) bool {
			return slices.Equal(sp.host.Binds, []string{"named:/c", "/etc:/e"}) && len(sp.host.Mounts) == 2
		}},
		"device": {plan.Problem{Kind: plan.ProblemNoDevice, Subject: "/dev/kvm"}, func(sp *spec) bool {
			return len(sp.host.Devices) == 1 && len(sp.host.BlkioDeviceWriteIOps) == 1
		}},
		"limited device": {plan.Problem{Kind: plan.ProblemNoDevice, Subject: "/dev/sda"}, func(sp *spec) bool {
			left := append(sp.limitedDevices(), sp.host.Devices[0].PathOnHost)
			return slices.Equal(left, []string{"/dev/zero", "/dev/sdb", "/dev/sdc", "/dev/sdd", "/dev/kvm", "/dev/kvm"})
		}},
		"runtime": {plan.Problem{Kind: plan.ProblemNoRuntime, Subject: "kata"}, func(sp *spec) bool { return sp.host.Runtime == "" }},
		"volume":  {plan.Problem{Kind: plan.ProblemNoVolume, Subject: "named"}, func(sp *spec) bool { return len(sp.host.Binds) == 4 }},
		"peer":    {plan.Problem{Kind: plan.ProblemNoContainer, Subject: "peer"}, func(sp *spec) bool { return sp.host.IpcMode == "" && sp.host.PidMode == "" && len(sp.host.Links) == 1 }},
		"link":    {plan.Problem{Kind: plan.ProblemNoContainer, Subject: "db"}, func(sp *spec) bool { return len(sp.host.Links) == 0 && sp.host.IpcMode != "" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := needy()
			test.problem.Text = "why"
			steps, rest := sp.leaveOut([]plan.Problem{test.problem})
			assert.Equal(t, len(rest), 0)
			assert.Equal(t, steps.String(), "leave out "+test.problem.Subject+" (why)\n")
			assert.Assert(t, test.check(sp), "%+v", sp)
		})
	}
}

func TestLeaveOutOfTheLastNetworkLeavesNone(t *testing.T) {
	sp := &spec{host: container.HostConfig{NetworkMode: "x"}, endpoints: map[string]*network.EndpointSettings{"x": {}}}
	sp.leaveOut([]plan.Problem{{Kind: plan.ProblemNoNetwork, Subject: "x"}})
	assert.Equal(t, string(sp.host.NetworkMode), "none")

	shared := &spec{host: container.HostConfig{NetworkMode: "container:peer"}}
	shared.leaveOut([]plan.Problem{{Kind: plan.ProblemNoContainer, Subject: "peer"}})
	assert.Equal(t, string(shared.host.NetworkMode), "none")
}

func TestLeaveOutKeepsWhatItCannotDoWithout(t *testing.T) {
	for _, kind := range []plan.ProblemKind{plan.ProblemNameTaken, plan.ProblemHostAccess, plan.ProblemPortTaken, plan.ProblemVolumeInUse, plan.ProblemDependent} {
		steps, rest := needy().leaveOut([]plan.Problem{{Kind: kind, Subject: "x"}})
		assert.Equal(t, len(steps), 0)
		assert.Equal(t, len(rest), 1, kind)
	}
}

// findVowel finds vowels.
func findVowel(_ context.Context, name string) error {
	switch {
	case name == "broken":
		return errors.New("broken")
	case strings.Contains("aeiou", name):
		return nil
	}
	return cerrdefs.ErrNotFound
}

func TestAbsent(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	gone, err := dockerop.Absent(t.Context(), names, findVowel)
	assert.NilError(t, err)
	assert.DeepEqual(t, gone, map[string]bool{"b": true, "c": true, "d": true, "f": true, "g": true, "h": true, "j": true})
	_, err = dockerop.Absent(t.Context(), append(names, "broken"), findVowel)
	assert.ErrorContains(t, err, "broken")
}

func TestDecodeSpecKnowsWhatItWouldLose(t *testing.T) {
	s := snapshotWith(`{"Image":"x","Env":["A=1"],"Later":{"x":[0,{"y":1}]},"Empty":{"x":[]}}`, `{"Memory":5,"memorySwap":6,"New":true,"Old":false}`, `{"EndpointsConfig":{"a":{"Aliases":["b"],"Speed":9},"gone":null},"Scope":"s"}`)
	sp, lost, err := decodeSpec(s.Config)
	assert.NilError(t, err)
	assert.DeepEqual(t, lost, []string{"Config.Later.x", "HostConfig.New", "NetworkingConfig.EndpointsConfig.a.Speed", "NetworkingConfig.Scope"})
	assert.Equal(t, sp.host.Memory+sp.host.MemorySwap, int64(11))
	assert.Equal(t, len(sp.endpoints), 1)
}

func TestDecodeSpecGoesByNetworkNames(t *testing.T) {
	id := strings.Repeat("12", 32)
	for mode, want := range map[string]string{id: "shop", id[:12]: "shop", "shop": "shop", "other": "other", "host": "host", "12": "12"} {
		s := snapshotWith(`{}`, `{"NetworkMode":"`+mode+`"}`, `{"EndpointsConfig":{"shop":{"NetworkID":"`+id+`"},"other":{"NetworkID":"9`+id[1:]+`"}}}`)
		sp, _, err := decodeSpec(s.Config)
		assert.NilError(t, err)
		assert.Equal(t, string(sp.host.NetworkMode), want)
		assert.Equal(t, sp.endpoints["shop"].NetworkID, "")
	}
}

func TestMissingFields(t *testing.T) {
	tests := []struct{ want, have, lost string }{
		{`{"a":1}`, `{"a":2}`, ""},
		{`{"a":1}`, `{}`, "p.a"},
		{`{"a":1}`, `{"A":1}`, ""},
		{`{"a":0,"b":"","c":[],"d":{},"e":null,"f":false,"g":[0,""],"h":{"x":{"y":[]}}}`, `{}`, ""},
		{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1}}}`, "p.a.b.d"},
		{`{"a":{"b":1},"c":[1]}`, `{}`, "p.a.b p.c"},
		{`{"a":{"b":1}}`, `{"a":7}`, "p.a.b"},
		{`{"a":[{"x":1}]}`, `{"a":[{}]}`, "p.a[0].x"},
		{`{"a":[0,{"x":1,"y":2}]}`, `{"a":[0,{"x":1}]}`, "p.a[1].y"},
		{`{"a":["NET_ADMIN"]}`, `{"a":["CAP_NET_ADMIN"]}`, ""},
		{`{"a":[1,2]}`, `{"a":[1]}`, ""},
		{`{"a":[1,2]}`, `{"a":[]}`, "p.a"},
		{`[1]`, `[]`, "p"},
		{`null`, `{}`, ""},
	}
	for _, test := range tests {
		lost, err := missingFields("p", []byte(test.want), []byte(test.have))
		assert.NilError(t, err)
		assert.Equal(t, strings.Join(lost, " "), test.lost, test.want)
	}
	for _, broken := range [][2]string{{`{`, `{}`}, {`{}`, `{`}} {
		_, err := missingFields("p", []byte(broken[0]), []byte(broken[1]))
		assert.Assert(t, err != nil)
	}
}

// snapshotWith has that configuration.
func snapshotWith(config, host, networking string) catalog.Snapshot {
	s := captured()
	s.Config = labels.Config{Config: []byte(config), HostConfig: []byte(host), NetworkingConfig: []byte(networking)}
	return s
}
