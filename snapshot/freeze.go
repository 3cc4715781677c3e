package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
)

// Pause says which containers are frozen while a snapshot is taken.
type Pause string

// The choices.
const (
	PauseAll    Pause = "all"    // the container, and every other that can write to its volumes
	PauseTarget Pause = "target" // only the container
	PauseNone   Pause = "none"   // none: what is captured may be torn
)

// Guard watches over what must not outlive this process: if it dies without
// calling release, that is put right all the same. It returns once the watching
// has begun.
type Guard func(ctx context.Context, w Watched) (release func(), err error)

// Watched is what a [Guard] has to put right: one of these.
type Watched struct {
	Frozen   []string // IDs of containers, which are thawed
	Replaced string   // name of a container whose restore in place is taken back
}

// frozen is a set of containers that were paused together.
type frozen struct {
	engine  *Engine
	ids     []string
	since   time.Time
	lasted  time.Duration
	release func()
	once    sync.Once
	early   bool // somebody else had thawed one of them by the time of thaw
	err     error
}

// freeze pauses containers side by side. The caller must thaw what it returns,
// also after an error.
func (e *Engine) freeze(ctx context.Context, ids []string) (*frozen, error) {
	f := &frozen{engine: e, release: func() {}}
	if len(ids) == 0 {
		return f, nil
	}
	mounts := ownMounts()
	for _, id := range ids {
		if runsIn(mounts, id) {
			return f, fmt.Errorf("freeze container %s: %w", shorten(id), errSelf)
		}
	}
	if e.guard != nil {
		release, err := e.guard(ctx, Watched{Frozen: ids})
		if err != nil {
			return f, fmt.Errorf("start the process that thaws the containers should this one be killed: %w", err)
		}
		f.release = release
	}
	f.since = e.now()
	var mu sync.Mutex
	// Not cancelled midway: whether a cancelled call has paused is not known.
	detached := context.WithoutCancel(ctx)
	var calls errgroup.Group
	for _, id := range ids {
		calls.Go(func() error {
			ours, err := e.pause(detached, id)
			if ours {
				mu.Lock()
				defer mu.Unlock()
				f.ids = append(f.ids, id)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return f, err
	}
	return f, ctx.Err()
}

// pauseTries is how often a container is tried to be paused. With cgroup v1 the
// kernel cannot always freeze one whose processes are very busy; runc gives up
// after a while, leaves it running, and may well succeed the next time.
const pauseTries = 5

// pauseTimeout bounds one call that pauses: meanwhile others stand still.
const pauseTimeout = 30 * time.Second

// pause pauses a container. It tells whether the container is ours to thaw, also
// after an error. One that has stopped needs no pause; one that somebody else has
// paused is a [pausedError].
//
// An error says nothing about what the engine has done: a call may be carried out
// although its answer is an error, or is lost. So the container is inspected.
func (e *Engine) pause(ctx context.Context, id string) (ours bool, err error) {
	for try := range pauseTries {
		err = e.pauseOnce(ctx, id)
		if err == nil {
			return true, nil
		}
		if try == 0 && isPausedAlready(err) {
			return false, &pausedError{container: id}
		}
		c, _, inspectErr := e.docker.ContainerInspectWithRaw(ctx, id, false)
		switch {
		case cerrdefs.IsNotFound(inspectErr):
			return false, nil
		case inspectErr != nil:
			return true, &FreezeError{Container: id, Err: errors.Join(err, inspectErr)}
		case c.State.Paused:
			return true, nil
		case !c.State.Running || c.State.Restarting:
			return false, nil
		case !strings.Contains(err.Error(), "unable to freeze"):
			return false, &FreezeError{Container: id, Err: err}
		}
	}
	return false, &FreezeError{Container: id, Err: err}
}

func (e *Engine) pauseOnce(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	return e.docker.ContainerPause(ctx, id)
}

// makePaused pauses a container that its user had paused. That somebody else does
// so is as good.
func (e *Engine) makePaused(ctx context.Context, id string) error {
	_, err := e.pause(ctx, id)
	if _, paused := errors.AsType[*pausedError](err); paused {
		return nil
	}
	return err
}

// isPausedAlready tells whether an engine refuses to pause a container because it
// is paused. The error's class does not tell: one that does not run is a conflict,
// too, and whatever stands between client and engine has classes of its own.
func isPausedAlready(err error) bool { return strings.Contains(err.Error(), "is already paused") }

// isNotPaused tells whether an engine refuses to thaw a container because it runs.
func isNotPaused(err error) bool { return strings.Contains(err.Error(), "is not paused") }

// thawTimeout bounds how long thawing is waited for. Engine 20.10 does not get to
// it while a healthcheck hangs that began in the frozen container, which may take
// as long as that has, by default 30 s.
const thawTimeout = 2 * time.Minute

// thaw lets the containers run again; it works after Ctrl-C, too. Only the first
// call does anything.
func (f *frozen) thaw(ctx context.Context) error {
	f.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawTimeout)
		defer cancel()
		f.early, f.err = f.engine.thaw(ctx, f.ids)
		if len(f.ids) > 0 {
			f.lasted = f.engine.now().Sub(f.since)
		}
		if f.err == nil {
			f.release()
		}
	})
	return f.err
}

// Thaw lets containers run again that an interrupted operation has frozen. One
// that is gone or thawed already is as good.
func (e *Engine) Thaw(ctx context.Context, containers []string) error {
	_, err := e.thaw(ctx, containers)
	return err
}

// thaw lets containers run again, and tells whether one ran already.
func (e *Engine) thaw(ctx context.Context, containers []string) (early bool, err error) {
	ran := make([]bool, len(containers))
	failures := make([]error, len(containers))
	var calls errgroup.Group
	for i, id := range containers {
		calls.Go(func() error {
			ran[i], failures[i] = e.unpause(ctx, id)
			return nil
		})
	}
	_ = calls.Wait() // the failures say it
	for _, one := range ran {
		early = early || one
	}
	return early, errors.Join(failures...)
}

// unpause thaws one container, and tells whether it ran already. One that is gone
// or thawed already is as good.
func (e *Engine) unpause(ctx context.Context, id string) (ran bool, err error) {
	err = e.docker.ContainerUnpause(ctx, id)
	if err == nil || cerrdefs.IsNotFound(err) {
		return false, nil
	}
	c, _, inspectErr := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if cerrdefs.IsNotFound(inspectErr) || inspectErr == nil && !c.State.Paused {
		return isNotPaused(err), nil
	}
	return false, fmt.Errorf("container %s is still paused, thaw it with docker unpause: %w", id, err)
}
