package snapshot

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withRemadePeer is an engine with a container that shares the namespaces of another one, which was made again since.
func withRemadePeer(t *testing.T, own container.HostConfig) (docker *enginetest.Docker, peer *enginetest.FakeContainer) {
	t.Helper()
	docker = enginetest.New()
	first := docker.Run(t, "peer")
	if own.NetworkMode != "" {
		own.NetworkMode = container.NetworkMode("container:" + first.ID)
	}
	own.PidMode, own.IpcMode = container.PidMode("container:"+first.ID), container.IpcMode("container:"+first.ID)
	web := docker.Create(t, "web", &container.Config{}, &own)
	assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
	snapshotOf(t, docker, capture.Options{Container: "peer", Name: "one"})
	engine := engineCounting(docker, 9)
	_, err := engine.Create(t.Context(), capture.Options{Container: "web", Name: "one"}, nil)
	assert.NilError(t, err)
	docker.Drop(first, false)
	docker.Randomness = 100
	return docker, docker.Run(t, "peer")
}

func assertShares(t *testing.T, c, peer *enginetest.FakeContainer) {
	t.Helper()
	of := "container:" + peer.ID
	assert.Equal(t, string(c.Host.NetworkMode)+" "+string(c.Host.PidMode)+" "+string(c.Host.IpcMode), of+" "+of+" "+of)
	assert.Equal(t, c.State, "running")
}

func TestRestoreFollowsAPeerThatWasMadeAgain(t *testing.T) {
	docker, peer := withRemadePeer(t, container.HostConfig{NetworkMode: "container:"})
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy"}, nil)
	assert.NilError(t, err)
	assertShares(t, docker.FindContainer("copy"), peer)
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.NilError(t, err)
	assertShares(t, docker.FindContainer("web"), peer)

	docker.Kill("peer")
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.Error(t, err, "cannot restore:\n  this container uses the network and the shared memory and the processes of peer, which does not run")
}

func TestReplaceTogetherFollowsAPeerThatWasMadeAgain(t *testing.T) {
	for _, gone := range []bool{false, true} {
		docker, peer := withRemadePeer(t, container.HostConfig{NetworkMode: "container:"})
		// The peer's snapshot is of the container that was made again, web's of the time before.
		docker.Randomness = 150
		_, err := engineCounting(docker, 60).Create(t.Context(), capture.Options{Container: "peer", Name: "two"}, nil)
		assert.NilError(t, err)
		if gone {
			docker.Drop(peer, false)
		}
		of := replaceOptions()
		of.Snapshot = "peer:two"
		_, err = engineOf(docker).ReplaceTogether(t.Context(), []replace.Options{replaceOptions(), of}, nil)
		assert.NilError(t, err)
		assertShares(t, docker.FindContainer("web"), docker.FindContainer("peer"))
	}
}

// A container of --rm is made again from its safety snapshot when a restore in place is rolled back.
func TestRollbackFollowsAPeerThatWasMadeAgain(t *testing.T) {
	docker, _ := withRemadePeer(t, container.HostConfig{NetworkMode: "container:", AutoRemove: true})
	web := docker.FindContainer("web")
	web.Host.NetworkMode, web.Host.PidMode, web.Host.IpcMode = "container:"+container.NetworkMode(docker.FindContainer("peer").ID), "", ""
	var now *enginetest.FakeContainer
	docker.Before("ContainerCreate web", 0, func() {
		docker.Drop(docker.FindContainer("peer"), false)
		docker.Refused = []string{"ContainerCreate web"}
		now = docker.Run(t, "peer")
		docker.Before("ContainerCreate web", 0, func() { docker.Refused = nil })
	})
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.ErrorContains(t, err, "was made again")
	assert.Equal(t, string(docker.FindContainer("web").Host.NetworkMode), "container:"+now.ID)
	assert.Equal(t, docker.FindContainer("web").State, "running")
}

func TestReplaceKeepsNoContainerThatCannotStartAgain(t *testing.T) {
	docker := withTwo(t)
	peer := docker.Run(t, "peer")
	web := docker.FindContainer("web")
	web.Host.NetworkMode = container.NetworkMode("container:" + peer.ID)
	docker.Drop(peer, false)
	o := replaceOptions()
	o.Only = []string{"data"}
	_, err := engineOf(docker).Replace(t.Context(), o, nil)
	assert.Error(t, err, "cannot restore:\n  this container uses the network of "+peer.ID[:12]+", which is gone, so it cannot be started again")
	assert.Equal(t, web.State, "running")
}
