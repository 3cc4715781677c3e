package dockerop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
)

// FreezeError is returned by Create if a container cannot be paused: rootless
// engines, for one, need cgroup v2 for that.
type FreezeError struct {
	Container string // its ID
	Err       error
}

func (e *FreezeError) Error() string {
	return fmt.Sprintf("freeze container %s: %v", Shorten(e.Container), e.Err)
}

// Unwrap returns the engine's error.
func (e *FreezeError) Unwrap() error { return e.Err }

// pauseTries is how often a container is tried to be paused. With cgroup v1 the
// kernel cannot always freeze one whose processes are very busy; runc gives up
// after a while, leaves it running, and may well succeed the next time.
const pauseTries = 5

// pauseTimeout bounds one call that pauses: meanwhile others stand still.
const pauseTimeout = 30 * time.Second

// Pause pauses a container. It tells whether the container is ours to thaw, also
// after an error. One that has stopped needs no pause; one that somebody else has
// paused is a [pausedError].
//
// An error says nothing about what the engine has done: a call may be carried out
// although its answer is an error, or is lost. So the container is inspected.
func (e *Engine) Pause(ctx context.Context, id string) (ours bool, err error) {
	for try := range pauseTries {
		err = e.pauseOnce(ctx, id)
		if err == nil {
			return true, nil
		}
		if try == 0 && IsPausedAlready(err) {
			return false, &PausedError{Container: id}
		}
		c, _, inspectErr := e.ContainerInspectWithRaw(ctx, id, false)
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
	return e.ContainerPause(ctx, id)
}

// MakePaused pauses a container that its user had paused. That somebody else does
// so is as good.
func (e *Engine) MakePaused(ctx context.Context, id string) error {
	_, err := e.Pause(ctx, id)
	if _, paused := errors.AsType[*PausedError](err); paused {
		return nil
	}
	return err
}

// IsPausedAlready tells whether an engine refuses to pause a container because it
// is paused. The error's class does not tell: one that does not run is a conflict,
// too, and whatever stands between client and engine has classes of its own.
func IsPausedAlready(err error) bool { return strings.Contains(err.Error(), "is already paused") }

// IsNotPaused tells whether an engine refuses to thaw a container because it runs.
func IsNotPaused(err error) bool { return strings.Contains(err.Error(), "is not paused") }

// Thaw lets containers run again, and tells whether one ran already.
func (e *Engine) Thaw(ctx context.Context, containers []string) (early bool, err error) {
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
	err = e.ContainerUnpause(ctx, id)
	if err == nil || cerrdefs.IsNotFound(err) {
		return false, nil
	}
	c, _, inspectErr := e.ContainerInspectWithRaw(ctx, id, false)
	if cerrdefs.IsNotFound(inspectErr) || inspectErr == nil && !c.State.Paused {
		return IsNotPaused(err), nil
	}
	return false, fmt.Errorf("container %s is still paused, thaw it with docker unpause: %w", id, err)
}

// PausedError means that somebody else has paused a container that is to be frozen.
type PausedError struct{ Container string }

func (e *PausedError) Error() string {
	return fmt.Sprintf("container %s was paused by somebody else", Shorten(e.Container))
}
