package snapshot

import (
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// A container that was unhealthy when it was captured cannot be expected to become healthy.
func TestUnhealthyContainerComesBackAsItWas(t *testing.T) {
	for captured, comesBack := range map[string]bool{container.Unhealthy: true, container.Healthy: false, container.Starting: false} {
		t.Run(captured, func(t *testing.T) {
			docker := enginetest.New()
			check := &container.HealthConfig{Test: []string{"CMD", "check"}}
			web := docker.Create(t, "web", &container.Config{Healthcheck: check}, &container.HostConfig{})
			assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
			web.Health = captured
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
			docker.OnStart = func(c *enginetest.FakeContainer) {
				if c.Config.Healthcheck != nil {
					c.Health = container.Unhealthy
				}
			}
			copied := runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy", Waiting: runconfig.Waiting{Wait: true}}
			_, err := engineOf(docker).Restore(t.Context(), copied, nil)
			assertReady(t, err, comesBack)
			_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			assertReady(t, err, comesBack)
			assert.Equal(t, docker.FindContainer("web").ID == web.ID, !comesBack)
		})
	}
}

// assertReady checks that containers came up, or that one became unhealthy, which more time does not change.
func assertReady(t *testing.T, err error, ready bool) {
	t.Helper()
	if ready {
		assert.NilError(t, err)
		return
	}
	down, ok := errors.AsType[*build.NotReadyError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, down.Reason, "became unhealthy")
	assert.Assert(t, !down.Late)
}
