package dockerop

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
)

// lateEngine is a busy engine 20.10 with one running container: what its runtime knows of a pause, and what
// the engine has heard of that.
type lateEngine struct {
	Docker

	mu      sync.Mutex
	frozen  bool // the container's processes
	shown   bool // what the engine says
	forgets bool // when its runtime refuses a thaw it notes an earlier one, and the pause after it a moment later
	silent  bool // it does not answer what it is asked about the container
	never   bool // it does not thaw what is frozen
	unkind  int  // how many times the kernel still fails to freeze
	pauses  int  // that were carried out
	refused int  // pauses and thaws that were not
}

func (e *lateEngine) set(frozen, shown bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.frozen, e.shown = frozen, shown
}

// hears makes the engine say something else after a while.
func (e *lateEngine) hears(paused bool, after time.Duration) {
	time.AfterFunc(after, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.shown = paused
	})
}

func (e *lateEngine) ContainerPause(context.Context, string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.shown:
		return errors.Join(errors.New("Container web is already paused"), cerrdefs.ErrConflict)
	case e.frozen:
		e.refused++
		return errors.New("cannot pause container web: cannot pause a paused container: unknown")
	}
	e.frozen, e.shown = true, true
	e.pauses++
	return nil
}

func (e *lateEngine) ContainerUnpause(context.Context, string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.shown || e.never && e.frozen:
		e.refused++
		return errors.Join(errors.New("Container web is not paused"), cerrdefs.ErrConflict)
	case !e.frozen:
		e.refused++
		if e.forgets {
			e.shown = false
			e.hears(true, time.Second)
		}
		return errors.New("cannot resume container web: OCI runtime resume failed: container not paused: unknown")
	}
	e.frozen, e.shown = false, false
	return nil
}

func (e *lateEngine) ContainerInspectWithRaw(ctx context.Context, _ string, _ bool) (container.InspectResponse, []byte, error) {
	if e.silent {
		<-ctx.Done()
		return container.InspectResponse{}, nil, ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{
		ID: "web", State: &container.State{Running: true, Paused: e.shown},
	}}, nil, nil
}

// Set stands for the worker that freezes and thaws past the engine.
func (e *lateEngine) Set(_ context.Context, _ string, frozen bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if frozen && e.unkind > 0 {
		e.unkind--
		e.frozen = false
		return errors.New("the kernel does not make it FROZEN")
	}
	e.frozen = frozen
	return nil
}

func (e *lateEngine) Close() error { return nil }

func (e *lateEngine) engine() *Engine {
	return &Engine{Docker: e, freezer: func(context.Context) (Freezer, error) { return e, nil }}
}

// runs fails the test unless the container runs, and the engine knows.
func (e *lateEngine) runs(t *testing.T) {
	t.Helper()
	time.Sleep(time.Minute) // until it has heard all
	e.mu.Lock()
	defer e.mu.Unlock()
	assert.Assert(t, !e.frozen, "its processes are frozen")
	assert.Assert(t, !e.shown, "the engine takes it for paused")
}

// TestThawOfALateEngine has an engine that hears late of what its runtime has done. A container that is thawed runs, and can be
// paused again.
func TestThawOfALateEngine(t *testing.T) {
	web := []string{"web"}
	for name, test := range map[string]struct {
		meet   func(*lateEngine)
		thaw   func(context.Context, *Engine) (bool, error)
		within time.Duration // at most
	}{
		"a pause of our own that it has not noted yet": {
			meet: func(e *lateEngine) { e.set(true, false); e.hears(true, 1500*time.Millisecond) },
			thaw: func(ctx context.Context, e *Engine) (bool, error) { return e.ThawOwn(ctx, web) }, within: 2 * time.Second,
		},
		"it takes a container that runs for paused": {
			meet:   func(e *lateEngine) { e.set(false, true) },
			thaw:   func(ctx context.Context, e *Engine) (bool, error) { return e.Thaw(ctx, web) },
			within: time.Second,
		},
		"the same, and it notes an earlier thaw first": {
			meet:   func(e *lateEngine) { e.set(false, true); e.forgets = true },
			thaw:   func(ctx context.Context, e *Engine) (bool, error) { return e.Thaw(ctx, web) },
			within: 2 * time.Second,
		},
		"processes that cannot be frozen again at first": {
			meet:   func(e *lateEngine) { e.set(false, true); e.unkind = 3 },
			thaw:   func(ctx context.Context, e *Engine) (bool, error) { return e.Thaw(ctx, web) },
			within: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late lateEngine
				test.meet(&late)
				began := time.Now()
				_, err := test.thaw(t.Context(), late.engine())
				assert.NilError(t, err)
				took := time.Since(began)
				assert.Assert(t, took <= test.within, took)
				assert.Assert(t, late.refused > 0) // it did happen
				late.runs(t)
				ours, err := late.engine().Pause(t.Context(), "web")
				assert.NilError(t, err)
				assert.Assert(t, ours)
			})
		})
	}
}

// TestThawGivesUp has processes that can never be frozen again, and an engine that never thaws. The thaw fails, and they run.
func TestThawGivesUp(t *testing.T) {
	for want, late := range map[string]*lateEngine{
		"the kernel does not make it FROZEN": {shown: true, unkind: 1 << 30},
		"is not paused":                      {shown: true, never: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := late.engine().Thaw(t.Context(), []string{"web"})
			assert.ErrorContains(t, err, "container web is still paused, thaw it with docker unpause: ")
			assert.ErrorContains(t, err, want)
			assert.Assert(t, !late.frozen)
		})
	}
}

// TestThawEnds although an engine never says what the container is: who tries again begins with helping it.
func TestThawEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := lateEngine{silent: true}
		began := time.Now()
		_, err := late.engine().Thaw(t.Context(), []string{"web"})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Since(began), thawTimeout)
	})
}

// TestSomebodyElseHasThawed is believed, after a while if the pause was our own.
func TestSomebodyElseHasThawed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late lateEngine
		began := time.Now()
		early, err := late.engine().Thaw(t.Context(), []string{"web"})
		assert.NilError(t, err)
		assert.Assert(t, early)
		assert.Equal(t, time.Since(began), time.Duration(0))
		early, err = late.engine().ThawOwn(t.Context(), []string{"web"})
		assert.NilError(t, err)
		assert.Assert(t, early)
		assert.Equal(t, time.Since(began), hearsWithin)
	})
}

// TestPauseOfALateEngine has a container that is paused already, of which the engine has not heard: that pause is ended.
func TestPauseOfALateEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := lateEngine{frozen: true}
		late.hears(true, time.Second)
		ours, err := late.engine().Pause(t.Context(), "web")
		assert.NilError(t, err)
		assert.Assert(t, ours)
		assert.Equal(t, late.pauses, 1)
		assert.Equal(t, late.refused, 1)
	})
	synctest.Test(t, func(t *testing.T) {
		late := lateEngine{frozen: true} // it never hears
		ours, err := late.engine().Pause(t.Context(), "web")
		assert.ErrorContains(t, err, "cannot pause a paused container")
		assert.Assert(t, !ours)
	})
}
