package snapshot

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// aliased is an engine whose container web mounts a volume that is the host's directory
// /etc, beside others that see it under other names.
func bindVolume(device string) map[string]string {
	return map[string]string{"type": "none", "o": "bind", "device": device}
}

func aliased(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	docker.HostPaths["/etc/sub"] = true
	for _, name := range []string{"data", "twin"} {
		_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, DriverOpts: bindVolume("/etc")})
		assert.NilError(t, err)
	}
	for name, bind := range map[string]string{
		"web": "data:/data", "bound": "/etc:/there", "part": "/etc/sub:/there", "twin": "twin:/data", "reader": "/etc:/there:ro", "other": "/:/host",
	} {
		docker.Create(t, name, &container.Config{}, &container.HostConfig{Binds: []string{bind}}).State = "running"
	}
	return docker
}

func TestWritersUnderOtherNamesAreFrozen(t *testing.T) {
	docker := aliased(t)
	docker.Before("ContainerCommit", 0, func() {
		for name, want := range map[string]string{"web": "paused", "bound": "paused", "part": "paused", "twin": "paused", "reader": "running", "other": "running"} {
			assert.Equal(t, docker.FindContainer(name).State, want, name)
		}
	})
	_, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.Count("ContainerPause"), 4)
	assert.Equal(t, docker.Count("ContainerUnpause"), 4)
}

func TestReplaceFindsHoldersUnderOtherNames(t *testing.T) {
	docker := aliased(t)
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	_, err := engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
	for _, name := range []string{"bound", "part", "twin", "reader"} {
		assert.ErrorContains(t, err, "volume data is in use by container "+name)
		docker.FindContainer(name).State = "exited"
	}
	_, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
	assert.NilError(t, err)
}
