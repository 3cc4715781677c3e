package runconfig

import (
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// needy returns a configuration that asks for one of everything.
func needy() *Spec {
	return &Spec{
		Host: container.HostConfig{
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
		Endpoints: map[string]*network.EndpointSettings{"front": {}, "back": {}, "bridge": {}},
	}
}

// bare returns surroundings without anything that [needy] asks for, but with the bridge network and
// a container of the name that the new one is to have.
func bare() Surroundings {
	return Surroundings{
		Networks:   []network.Summary{{Name: "bridge", ID: "1"}},
		Containers: []container.Summary{{ID: "abc", Names: []string{"/web"}}},
		NoPath:     map[string]bool{"/srv": true, "/dev/kvm": true, "/dev/sda": true, "/dev/sdd": true},
		NoVolume:   map[string]bool{"named": true, "other": true},
		Info:       system.Info{DefaultRuntime: "runc"},
	}
}

func TestProblemsAreFoundAllAtOnce(t *testing.T) {
	err := &plan.ProblemsError{Problems: bare().Problems(needy(), "web")}
	assert.Equal(t, err.Error(), strings.Join([]string{
		"cannot restore:",
		"a container named web exists already",
		"network back does not exist",
		"network front does not exist",
		"device /dev/kvm does not exist on the engine's host",
		"device /dev/sda, whose I/O is limited, does not exist on the engine's host",
		"device /dev/sdd, whose I/O is limited, does not exist on the engine's host",
		"the source of bind mount /srv does not exist on the engine's host",
		"volume named does not exist any more",
		"volume other does not exist any more",
		"runtime kata is not known to the engine",
		"this container has a link to db, which is gone",
		"this container uses the shared memory and the processes of peer, which is gone",
	}, "\n  "))
	assert.Assert(t, cerrdefs.IsFailedPrecondition(err))
}

func TestNoProblemsWhereAllIsThere(t *testing.T) {
	all := bare()
	all.NoPath, all.NoVolume = nil, nil
	all.Networks = append(all.Networks, network.Summary{Name: "front", ID: "2"}, network.Summary{Name: "back", ID: "3"})
	all.Containers = append(all.Containers, container.Summary{ID: "def", Names: []string{"/db"}}, container.Summary{ID: "0", Names: []string{"/peer"}})
	all.Info.Runtimes = map[string]system.RuntimeWithStatus{"kata": {}}
	assert.Equal(t, len(all.Problems(needy(), "copy")), 0)
}

func TestRuntimesThatTheEngineFinds(t *testing.T) {
	s := Surroundings{Info: system.Info{DefaultRuntime: "crun", Runtimes: map[string]system.RuntimeWithStatus{"runc": {}}}}
	for _, known := range []string{"", "runc", "crun", "io.containerd.runc.v2", "/usr/bin/other"} {
		assert.Assert(t, s.hasRuntime(known), known)
	}
	assert.Assert(t, !s.hasRuntime("kata"))
}

func TestRequiredPathsAndVolumes(t *testing.T) {
	assert.DeepEqual(t, needy().RequiredPaths(), []string{
		"/dev/kvm", "/dev/null", "/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd", "/dev/zero", "/etc", "/srv",
	})
	assert.DeepEqual(t, needy().NamedVolumes(nil), []string{"named", "other"})
	made := NewVolume{}
	made.Create.Name = "named"
	assert.DeepEqual(t, needy().NamedVolumes([]NewVolume{made}), []string{"other"})
}
