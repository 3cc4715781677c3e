package snapshot

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

func TestASnapshotThatTakesTooLongIsGivenUp(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	o := runOf(retention.IntervalRunStart)
	o.Timeout = time.Nanosecond
	var events enginetest.Events
	result, err := engineOf(docker).Run(t.Context(), o, ending(0), events.Progress)
	assert.NilError(t, err)
	assert.Equal(t, taken(result.Session), "")
	assert.Equal(t, docker.FindContainer("web").State, "running")
	assert.Assert(t, strings.Contains(strings.Join(events.Warnings(), "\n"), "it took longer than 1ns"), "%q", events.Warnings())
}

// A worker or an engine that hangs while the container is frozen keeps it frozen only for the time of the
// snapshot.
func TestASnapshotThatHangsWhileFrozenIsThawed(t *testing.T) {
	for call, skip := range map[string]int{"pass": 1, "ContainerCommit": 0} { // the first pass is of running containers
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				docker := enginetest.New()
				docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).State = "running"
				state := func() string {
					docker.Mu.Lock()
					defer docker.Mu.Unlock()
					return docker.FindContainer("web").State
				}
				var met, left string
				docker.Before(call, skip, func() {
					met = state()
					for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
						if left = state(); left == "running" {
							return
						}
					}
				})
				o := runOf(retention.IntervalRunStart)
				o.Timeout = 300 * time.Millisecond
				var events enginetest.Events
				result, err := engineOf(docker).Run(t.Context(), o, ending(0), events.Progress)
				assert.NilError(t, err)
				assert.Equal(t, met, "paused")
				assert.Equal(t, left, "running", "while the call hung")
				assert.Equal(t, taken(result.Session), "")
				assert.Assert(t, strings.Contains(strings.Join(events.Warnings(), "\n"), "it took longer than 300ms"), "%q", events.Warnings())
				assert.Equal(t, state(), "running")
				all, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
				assert.NilError(t, err)
				assert.Equal(t, len(all), 0)
				assert.Equal(t, len(docker.Service.Archives), 0)
			})
		})
	}
}
