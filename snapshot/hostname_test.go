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

// A container that is restored in place keeps a host name that the engine chose, again and again. A copy gets its own.
func TestReplaceKeepsDefaultHostname(t *testing.T) {
	docker := enginetest.New()
	hostname := docker.Create(t, "web", &container.Config{}, &container.HostConfig{}).Config.Hostname
	assert.Equal(t, hostname, docker.FindContainer("web").ID[:12])
	for _, name := range []string{"one", "two", "three"} {
		before := docker.FindContainer("web").ID
		snapshotOf(t, docker, capture.Options{Container: "web", Name: name})
		_, err := engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:" + name}}, nil)
		assert.NilError(t, err)
		web := docker.FindContainer("web")
		assert.Assert(t, web.ID != before)
		assert.Equal(t, web.Config.Hostname, hostname, name)
		copied, _ := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:" + name, Name: "copy-" + name})
		assert.Equal(t, docker.FindContainer(copied.ContainerID).Config.Hostname, copied.ContainerID[:12], name)
	}
}

func TestPromotedCopyGetsTheOriginalsHostname(t *testing.T) {
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{})
	hostname := web.ID[:12]
	snapshotOf(t, docker, capture.Options{Container: "web"})
	restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:latest", Name: "copy"})
	_, err := engineOf(docker).Replace(t.Context(), replace.Options{Copy: "copy"}, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("web").Config.Hostname, hostname)
	snapshotOf(t, docker, capture.Options{Container: "web"})
	copied, _ := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:latest"})
	assert.Equal(t, docker.FindContainer(copied.ContainerID).Config.Hostname, copied.ContainerID[:12])
}
