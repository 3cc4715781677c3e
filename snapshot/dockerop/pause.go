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

// FreezeError says that a container cannot be paused. A rootless engine, for one, needs cgroup v2
// for that.
type FreezeError struct {
	Container string // its ID
	Err       error
}

func (e *FreezeError) Error() string {
	return fmt.Sprintf("freeze container %s: %v", Shorten(e.Container), e.Err)
}

// Unwrap returns the engine's error.
func (e *FreezeError) Unwrap() error { return e.Err }

// pauseTries is how often Pause tries. With cgroup v1 the kernel cannot always freeze a container
// whose processes are very busy. Then runc gives up after a while and leaves it running; the next
// attempt may well succeed.
const pauseTries = 5

// pauseTimeout bounds one call that pauses, because other containers are frozen meanwhile.
const pauseTimeout = 30 * time.Second

// Pause pauses a container. ours says whether we have to thaw it, also after an error. A container
// that has stopped needs no pause. If somebody else has paused it, the error is a [PausedError]; if
// it cannot be paused, a [FreezeError].
//
// An engine's error does not tell what it has done: it may carry out a call and then fail, or its
// answer may be lost. So after an error Pause inspects the container. It does so before, too: an engine
// 20.10 answers that only when the commands have begun that are about to, and with these it would get
// stuck.
//
// A busy engine 20.10 may not have heard yet that a container is paused: then its runtime refuses. That pause
// is ended before the container is paused again, because what happened under it is not known.
func (e *Engine) Pause(ctx context.Context, id string) (ours bool, err error) {
	if _, err := e.InspectIfThere(ctx, id); err != nil {
		return false, err
	}
	for try := range pauseTries {
		err = e.pauseOnce(ctx, id)
		if err == nil {
			return true, nil
		}
		if try == 0 && isPausedAlready(err) {
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
		case strings.Contains(err.Error(), "cannot pause a paused container"):
			if err := e.endPause(ctx, id); err != nil {
				return false, &FreezeError{Container: id, Err: err}
			}
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

// endPause ends a pause that the engine has not heard of yet.
func (e *Engine) endPause(ctx context.Context, id string) error {
	t := e.thawer()
	paused, err := t.awaitPaused(ctx, id, contradictionPatience)
	if err == nil && paused {
		_, err = t.unpause(ctx, id)
	}
	return err
}

// MakePaused pauses a container that its user had paused. It does not matter if somebody else has
// done so already.
func (e *Engine) MakePaused(ctx context.Context, id string) error {
	_, err := e.Pause(ctx, id)
	if _, paused := errors.AsType[*PausedError](err); paused {
		return nil
	}
	return err
}

// isPausedAlready tells whether an engine refused to pause a container because it is paused. The
// error's class does not tell: a container that does not run is a conflict as well, and proxies
// between client and engine have classes of their own.
func isPausedAlready(err error) bool { return strings.Contains(err.Error(), "is already paused") }

// isNotPaused tells whether an engine refused to thaw a container because it is not paused.
func isNotPaused(err error) bool { return err != nil && strings.Contains(err.Error(), "is not paused") }

// Thawer is the part of the Engine API that [Thaw] calls.
type Thawer interface {
	Inspector
	ContainerUnpause(ctx context.Context, id string) error
}

// hearsWithin is how late a busy engine 20.10 hears of what its runtime did to a container.
const hearsWithin = 2 * time.Second

func (e *Engine) thawer() thawer { return thawer{docker: e.Docker, open: e.freezer} }

// Thaw lets containers run again, all at once. early says that at least one of them was running
// already.
func (e *Engine) Thaw(ctx context.Context, containers []string) (early bool, err error) {
	return e.thawer().thaw(ctx, containers)
}

// ThawOwn does the same with containers that the caller has paused itself. A busy engine 20.10 may note just
// now that one of them was thawed before, and take it for running until it notes the pause as well. So it is
// not believed at once that somebody else has thawed it.
func (e *Engine) ThawOwn(ctx context.Context, containers []string) (early bool, err error) {
	t := e.thawer()
	t.doubts = hearsWithin
	return t.thaw(ctx, containers)
}

// Thaw lets containers run again, all at once, also if the engine is stuck. early says that at least
// one of them was running already.
func Thaw(ctx context.Context, docker Thawer, freezer OpenFreezer, containers []string) (early bool, err error) {
	return thawer{docker: docker, open: freezer}.thaw(ctx, containers)
}

// thawTimeout bounds a thaw, with the help that an engine 20.10 may need for that.
const thawTimeout = 2 * time.Minute

func (t thawer) thaw(ctx context.Context, containers []string) (early bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, thawTimeout)
	defer cancel()
	ran := make([]bool, len(containers))
	failures := make([]error, len(containers))
	var calls errgroup.Group
	for i, id := range containers {
		calls.Go(func() error {
			ran[i], failures[i] = t.unpause(ctx, id)
			return nil
		})
	}
	_ = calls.Wait() // failures holds the errors
	for _, one := range ran {
		early = early || one
	}
	return early, errors.Join(failures...)
}

// contradictionPatience is for how long an engine is asked again that refuses to thaw a container which it shows as paused.
const contradictionPatience = 5 * time.Second

// unpause thaws one container; ran says that it was running already, for all that is known. It succeeds if the
// container is gone.
//
// A busy engine 20.10 notes late, a second time, that a container was paused or thawed, and takes one that has
// been paused again meanwhile for running: it refuses to thaw it, and shows it as paused a moment later. So it
// is asked again.
func (t thawer) unpause(ctx context.Context, id string) (ran bool, err error) {
	err = retry(ctx, contradictionPatience, isNotPaused, func(context.Context) error {
		// An engine that is stuck has to be helped first: that takes longer than this patience.
		refused, err := t.unpauseOnce(ctx, id)
		ran = ran || refused
		return err
	})
	return ran && err == nil, err
}

// unpauseOnce asks once; refused says that the engine took the container for running.
func (t thawer) unpauseOnce(ctx context.Context, id string) (refused bool, err error) {
	err = t.ask(ctx, id)
	if err == nil || cerrdefs.IsNotFound(err) {
		return false, nil
	}
	refused = isNotPaused(err)
	doubts := time.Duration(0)
	if refused {
		doubts = t.doubts
	}
	paused, inspectErr := t.awaitPaused(ctx, id, doubts)
	if cerrdefs.IsNotFound(inspectErr) || inspectErr == nil && !paused {
		return refused, nil
	}
	return refused, fmt.Errorf("container %s is still paused, thaw it with docker unpause: %w", id, err)
}

// PausedError says that somebody else has paused a container that we want to freeze.
type PausedError struct{ Container string }

func (e *PausedError) Error() string {
	return fmt.Sprintf("container %s was paused by somebody else", Shorten(e.Container))
}
