package snapshot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// A command begins in the container while it is frozen, so an engine 20.10 thaws it no more. Whatever
// freezes and thaws containers gets it to run again, within seconds.
func TestAStuckEngineIsHelped(t *testing.T) {
	for name, tc := range map[string]struct {
		binds  []string
		freeze func(t *testing.T, docker *enginetest.Docker, c *enginetest.FakeContainer) error
	}{
		"create": {[]string{"data:/data"}, func(t *testing.T, docker *enginetest.Docker, _ *enginetest.FakeContainer) error {
			_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
			return err
		}},
		"create without volumes, frozen by the engine": {nil, func(t *testing.T, docker *enginetest.Docker, _ *enginetest.FakeContainer) error {
			_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
			return err
		}},
		"the guard": {nil, func(t *testing.T, docker *enginetest.Docker, c *enginetest.FakeContainer) error {
			if err := docker.ContainerPause(t.Context(), c.ID); err != nil {
				return err
			}
			return engineOf(docker).Thaw(t.Context(), []string{c.ID})
		}},
		"the guard of one that was killed while it helped": {nil, func(t *testing.T, docker *enginetest.Docker, c *enginetest.FakeContainer) error {
			if err := docker.ContainerPause(t.Context(), c.ID); err != nil {
				return err
			}
			past, err := docker.Service.OpenFreezer(t.Context())
			if err != nil {
				return err
			}
			if err := past.Set(t.Context(), c.ID, false); err != nil {
				return err
			}
			return engineOf(docker).Thaw(t.Context(), []string{c.ID})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				docker := enginetest.New()
				c := docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: tc.binds})
				assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
				c.Begins = true
				began := time.Now()
				assert.NilError(t, tc.freeze(t, docker, c))
				assert.Equal(t, docker.FindContainer("web").State, "running")
				assert.Assert(t, time.Since(began) < 10*time.Second, time.Since(began))
				assert.Assert(t, !c.Begins) // it did happen
			})
		})
	}
}

// Somebody else's pause has left the engine stuck, so it says nothing of the container. A snapshot is taken all
// the same, and the container stays paused.
func TestAContainerThatIsStuckAlreadyIsCaptured(t *testing.T) {
	for name, binds := range map[string][]string{"no volume": nil, "a volume": {"data:/data"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				docker := enginetest.New()
				c := docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: binds})
				assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
				c.Begins = true
				assert.NilError(t, docker.ContainerPause(t.Context(), c.ID))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				created, err := engineOf(docker).Create(ctx, capture.Options{Container: "web"}, nil)
				assert.NilError(t, err)
				assert.Equal(t, created.Container.State, labels.StatePaused)
				assert.Equal(t, docker.FindContainer("web").State, "paused")
				assert.Assert(t, time.Since(began) < 20*time.Second, time.Since(began))
				assert.Assert(t, !c.Begins) // it did happen
				assert.NilError(t, engineOf(docker).Thaw(t.Context(), []string{c.ID}))
				assert.Equal(t, docker.FindContainer("web").State, "running")
			})
		})
	}
}
