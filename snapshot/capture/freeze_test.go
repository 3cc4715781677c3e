package capture

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// sharers is an engine with containers that mount the volume data in every way.
func sharers(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	for name, bind := range map[string]string{"web": "data:/data", "writer": "data:/d", "reader": "data:/d:ro", "other": "logs:/d", "stopped": "data:/d", "paused": "data:/d", "keeper": "kept:/d", "onlooker": "read:/d:ro"} {
		docker.Create(t, name, &container.Config{}, &container.HostConfig{Binds: []string{bind}}).State = "running"
	}
	docker.FindContainer("stopped").State = "exited"
	docker.FindContainer("paused").State = "paused"
	docker.FindContainer("keeper").State = "paused"
	return docker
}

func TestWritersAreThoseThatCanChangeWhatIsCaptured(t *testing.T) {
	for name, test := range map[string]struct {
		pause   Pause
		target  string
		volumes []string
		want    []string
		idle    bool
	}{
		"all":                      {PauseAll, "web", []string{"data"}, []string{"web", "writer"}, false},
		"all, of two volumes":      {PauseAll, "web", []string{"data", "logs"}, []string{"web", "writer", "other"}, false},
		"all, without volumes":     {PauseAll, "web", nil, []string{"web"}, false},
		"only the target":          {PauseTarget, "web", []string{"data"}, []string{"web"}, false},
		"none":                     {PauseNone, "web", []string{"data"}, nil, false},
		"a target that stopped":    {PauseAll, "stopped", []string{"data"}, []string{"web", "writer"}, false},
		"a target on its own":      {PauseTarget, "paused", []string{"data"}, nil, false},
		"nobody":                   {PauseAll, "stopped", []string{"unused"}, nil, true},
		"nobody but one who reads": {PauseAll, "stopped", []string{"read"}, nil, true},
		"one that the user paused": {PauseAll, "stopped", []string{"kept"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			docker := sharers(t)
			who, err := capturerOf(docker).writers(t.Context(), Source{Container: docker.FindContainer(test.target).Inspect(false)}, test.volumes, test.pause, nil)
			assert.NilError(t, err)
			var got []string
			for _, id := range who.running {
				got = append(got, docker.FindContainer(id).Name)
			}
			assert.Equal(t, who.idle, test.idle)
			slices.Sort(got)
			slices.Sort(test.want)
			assert.DeepEqual(t, got, test.want)
		})
	}
}

// Whichever call fails or is cancelled, everything that ran runs again. Only a
// thaw that is itself refused cannot be helped, and says so; one whose answer is
// lost is looked after.
func TestFrozenContainersAreThawedWhateverFails(t *testing.T) {
	names := []string{"web", "writer", "other"}
	operate := func(ctx context.Context, docker *enginetest.Docker) error {
		f, err := capturerOf(docker).freeze(ctx, names)
		return errors.Join(err, f.thaw(ctx), f.thaw(ctx))
	}
	enginetest.EachFault(t, sharers, operate, func(t *testing.T, o enginetest.Outcome) {
		left := ""
		for _, name := range names {
			if o.Docker.FindContainer(name).State != "running" {
				left += name
			}
		}
		if o.Hit("ContainerUnpause") && o.Kind == enginetest.FaultRefuse {
			assert.ErrorContains(t, o.Err, "container "+left+" is still paused, thaw it with docker unpause")
			return
		}
		assert.Equal(t, left, "")
	})
}

func TestFreezeTakesWhatNeedsNoFreezing(t *testing.T) {
	docker := sharers(t)
	before := docker.World()
	frozen, err := capturerOf(docker).freeze(t.Context(), []string{"web", "stopped", "gone"})
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("web").State, "paused")
	assert.NilError(t, frozen.thaw(t.Context()))
	assert.Assert(t, frozen.lasted > 0)
	assert.Equal(t, docker.World(), before)
}

func TestTheGuardWatchesForAsLongAsThereIsSomethingFrozen(t *testing.T) {
	docker := sharers(t)
	var watched []string
	capturer := capturerWatchedBy(docker, func(_ context.Context, w dockerop.Watched) (func(), error) {
		watched = w.Frozen
		assert.Equal(t, docker.FindContainer("web").State, "running")
		return func() { watched = nil }, nil
	})
	frozen, err := capturer.freeze(t.Context(), []string{"web"})
	assert.NilError(t, err)
	assert.DeepEqual(t, watched, []string{"web"})
	docker.Fault = enginetest.Fault{At: len(docker.Calls) + 1, Kind: enginetest.FaultRefuse}
	assert.ErrorContains(t, frozen.thaw(t.Context()), "still paused")
	assert.DeepEqual(t, watched, []string{"web"})

	capturer = capturerWatchedBy(docker, func(context.Context, dockerop.Watched) (func(), error) { return nil, errors.New("no process") })
	frozen, err = capturer.freeze(t.Context(), []string{"writer"})
	assert.ErrorContains(t, err, "start the guard: no process")
	assert.NilError(t, frozen.thaw(t.Context()))
	assert.Equal(t, docker.FindContainer("writer").State, "running")
}
