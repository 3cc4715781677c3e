package snapshot

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// A worker ends a moment after its client was killed: who recovers at once waits for that,
// and not for one that goes on.
func TestRecoverWaitsForAWorkerThatIsAboutToEnd(t *testing.T) {
	for _, ends := range []bool{true, false} {
		docker := withTwo(t)
		web := docker.FindContainer("web").ID
		replaceUntil(t, docker, "apply data", 1)
		if ends {
			docker.Before("ContainerList", 1, docker.ClientDies)
		}
		done, err := engineOf(docker).Recover(t.Context(), "web", nil)
		assert.NilError(t, err)
		if !ends {
			assert.Equal(t, len(done), 0)
			continue
		}
		assert.Equal(t, docker.FindContainer("web").ID, web)
		assert.Equal(t, docker.Data(), "two")
	}
}

// A restore in place that is taken back has the container set aside; it may be over when
// somebody who did not find the container looks for that restore.
func TestCreateLooksAgainForAContainerThatWasAside(t *testing.T) {
	docker := withTwo(t)
	web := docker.FindContainer("web")
	rename := func(name string) {
		docker.Mu.Lock()
		defer docker.Mu.Unlock()
		web.Name = name
	}
	docker.Before("ContainerInspect", 0, func() {
		rename("aside")
		docker.Before("ContainerInspect", 0, func() { rename("web") })
	})
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.NilError(t, err)
}

// Putting back what large volumes held takes longer than any single call of the engine may.
func TestRecoverTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docker := withTwo(t)
		killedAt(t, docker, "ContainerCreate web", 0)
		docker.Before("apply data", 0, func() { time.Sleep(time.Hour) })
		began := time.Now()
		done, err := engineOf(docker).Recover(t.Context(), "web", nil)
		assert.NilError(t, err)
		assert.Equal(t, len(done), 1)
		assert.Assert(t, time.Since(began) >= time.Hour) // it did happen
		assert.Equal(t, docker.Data(), "two")
		again, err := engineOf(docker).Recover(t.Context(), "web", nil)
		assert.NilError(t, err)
		assert.Equal(t, len(again), 0)
	})
}

// Volumes are not put back under a container that uses them now.
func TestRecoverLeavesAVolumeInUseAlone(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	killedAt(t, docker, "ContainerCreate web", 0)
	user := docker.Create(t, "user", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	user.State = "running"
	docker.FindVolume("data").Content = "three"
	for range 2 {
		_, err := engineOf(docker).Recover(t.Context(), "web", nil)
		assert.ErrorContains(t, err, "volume data is in use by container user")
		assert.Equal(t, docker.Data(), "three")
	}
	user.State = "exited"
	_, err := engineOf(docker).Recover(t.Context(), "web", nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.Data(), "two")
	assert.Equal(t, docker.FindContainer("web").ID, old)
}

// A new container that was at work for long after its restore was interrupted keeps
// what it has written.
func TestRecoverFinishesWhatHasGoneOn(t *testing.T) {
	for name, tc := range map[string]struct {
		later    time.Duration
		change   func(*enginetest.Docker, *enginetest.FakeContainer)
		finished bool
	}{
		"soon":                       {time.Minute, func(*enginetest.Docker, *enginetest.FakeContainer) {}, false},
		"much later":                 {time.Hour, func(*enginetest.Docker, *enginetest.FakeContainer) {}, true},
		"much later, it has ended":   {time.Hour, func(f *enginetest.Docker, made *enginetest.FakeContainer) { made.End(f.Clock) }, true},
		"much later, it ended early": {time.Hour, func(f *enginetest.Docker, made *enginetest.FakeContainer) { made.End(f.Clock.Add(-time.Hour)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			old := docker.FindContainer("web").ID
			killedAt(t, docker, "held", 1) // it is up, but the restore is not settled
			made := docker.FindContainer("web")
			assert.Assert(t, made.ID != old && made.State == "running")
			docker.FindVolume("data").Content = "three"
			docker.Clock = docker.Clock.Add(tc.later)
			tc.change(docker, made)
			done, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			web := docker.FindContainer("web")
			if !tc.finished {
				assert.Equal(t, web.ID+docker.Data(), old+"two")
				return
			}
			assert.Equal(t, web.ID+docker.Data(), made.ID+"three")
			assert.Assert(t, docker.FindContainer(old) == nil)
			finished := func(r replace.Recovery) bool { return strings.Contains(r.Text, "the restore of ") }
			assert.Assert(t, slices.ContainsFunc(done, finished), "%v", done)
			again, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			assert.Equal(t, len(again), 0)
		})
	}
}

// A client that is killed when its restore was settled leaves the rest to its guard,
// which waits for the worker to end.
func TestSettleFinishesASettledRestore(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	replaceUntil(t, docker, "ContainerRemove "+old, 0)
	docker.Service.Waiting = func(string) { docker.ClientDies() }
	assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil))
	assertReplaced(t, docker, old)
}

func TestTheReplacedContainerIsKeptIfItIsTheLast(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	killedAt(t, docker, "ContainerRemove "+old, 0)
	assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
	var got enginetest.Events
	_, err := engineOf(docker).Recover(t.Context(), "", got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, docker.FindContainer(old) != nil)
	assert.Assert(t, strings.Contains(strings.Join(got.Warnings(), "\n"), "is kept"))
}
