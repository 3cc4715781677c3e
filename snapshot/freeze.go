package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
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

// writers are the containers that can write to what is captured.
type writers struct {
	running []string // IDs of those to freeze: the target, and every other that mounts one of the volumes to write
	idle    bool     // there are no others either: those that the user has paused still have pages mapped that they wrote to
}

// writers finds out who can write now.
func (e *Engine) writers(ctx context.Context, from source, volumes []string, pause Pause) (writers, error) {
	var w writers
	if pause != PauseNone && containerState(from.container.State) == labels.StateRunning {
		w.running = append(w.running, from.container.ID)
	}
	if pause != PauseAll || len(volumes) == 0 {
		return w, nil
	}
	sharing, err := e.usersOf(ctx, volumes)
	if err != nil {
		return w, err
	}
	w.idle = len(w.running) == 0
	for _, c := range sharing {
		writes := slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool {
			return m.RW && slices.Contains(volumes, m.Name)
		})
		if !writes {
			continue
		}
		w.idle = false
		if c.State == container.StateRunning && !slices.Contains(w.running, c.ID) {
			w.running = append(w.running, c.ID)
		}
	}
	return w, nil
}

// joined tells whether somebody writes who did not before.
func (w writers) joined(before writers) bool {
	isNew := func(id string) bool { return !slices.Contains(before.running, id) }
	return slices.ContainsFunc(w.running, isNew) || before.idle && !w.idle
}

// frozen is a set of containers that were paused together.
type frozen struct {
	engine  *Engine
	ids     []string
	since   time.Time
	lasted  time.Duration
	release func()
	once    sync.Once
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
			return f, fmt.Errorf("freeze container %s: %w", id[:min(len(id), shortID)], errSelf)
		}
	}
	if e.guard != nil {
		release, err := e.guard(ctx, Watched{Frozen: ids})
		if err != nil {
			return f, fmt.Errorf("guard frozen containers: %w", err)
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
			err := e.pause(detached, id)
			if err != nil && isAnswer(err) {
				return e.pauseFailed(detached, id, err)
			}
			mu.Lock()
			defer mu.Unlock()
			f.ids = append(f.ids, id)
			return describe(err, "freeze container "+id)
		})
	}
	if err := calls.Wait(); err != nil {
		return f, err
	}
	return f, ctx.Err()
}

// isAnswer tells whether an error is what the engine answered. Without an answer
// the call may have been carried out: the connection broke on the way back.
func isAnswer(err error) bool {
	return cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) || cerrdefs.IsInternal(err) || cerrdefs.IsInvalidArgument(err) || cerrdefs.IsFailedPrecondition(err)
}

// pauseTries is how often a container is tried to be paused. With cgroup v1 the
// kernel cannot always freeze one whose processes are very busy; runc gives up
// after a while, leaves it running, and may well succeed the next time.
const pauseTries = 5

func (e *Engine) pause(ctx context.Context, id string) (err error) {
	for range pauseTries {
		err = e.docker.ContainerPause(ctx, id)
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
	}
	return err
}

// pauseFailed looks whether a container that cannot be paused needs to be: it
// may have stopped meanwhile, wait for its next start, or the user may have
// paused it.
func (e *Engine) pauseFailed(ctx context.Context, id string, failure error) error {
	c, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if cerrdefs.IsNotFound(err) || err == nil && (c.State.Paused || !c.State.Running || c.State.Restarting) {
		return nil
	}
	return &FreezeError{Container: id, Err: failure}
}

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
		f.err = f.engine.Thaw(ctx, f.ids)
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
	failures := make([]error, len(containers))
	var calls errgroup.Group
	for i, id := range containers {
		calls.Go(func() error {
			failures[i] = e.unpause(ctx, id)
			return nil
		})
	}
	_ = calls.Wait() // the failures say it
	return errors.Join(failures...)
}

// unpause thaws one container. One that is gone or thawed already is as good.
func (e *Engine) unpause(ctx context.Context, id string) error {
	err := e.docker.ContainerUnpause(ctx, id)
	if err == nil || cerrdefs.IsNotFound(err) {
		return nil
	}
	c, _, inspectErr := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if cerrdefs.IsNotFound(inspectErr) || inspectErr == nil && !c.State.Paused {
		return nil
	}
	return fmt.Errorf("container %s is still paused, thaw it with docker unpause: %w", id, err)
}
