package dockerop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// An engine 20.10 gets stuck if a container is frozen at the moment when a command begins in it, by
// docker exec or as a healthcheck: the command's first process is already in the container's control
// group, and is frozen as well. containerd's shim waits for that process, the thaw waits for the shim,
// and whoever inspects the container waits, too, and keeps it locked: a commit waits for that lock. None
// of it has an end. Later engines do not get stuck.
//
// What helps is to thaw the processes past the engine. Then the command begins, and the engine goes
// on. Most likely it fails to thaw now, because nothing is frozen, and takes the container for paused
// for good: so the processes are frozen again, and the engine is asked once more.

// Freezer freezes and thaws the processes of containers past the engine, which learns nothing of it.
type Freezer interface {
	Set(ctx context.Context, container string, frozen bool) error
	Close() error
}

// OpenFreezer starts a [Freezer]. It works while the engine is stuck with one container.
type OpenFreezer func(ctx context.Context) (Freezer, error)

// stuckAfter is how long an engine may take to thaw a container before it is taken for stuck. Thawing
// takes some 50 ms.
const stuckAfter = 3 * time.Second

// call is a call of the engine that ends with a thaw. Its error is there once over is closed.
type call struct {
	over chan struct{}
	err  error
}

// startCall begins a call, whose answer nobody waits for yet.
func startCall(do func() error) *call {
	c := &call{over: make(chan struct{})}
	go func() {
		defer close(c.over)
		c.err = do()
	}()
	return c
}

// within waits for the answer, but not longer than some time.
func (c *call) within(ctx context.Context, limit time.Duration) (answered bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.over:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// wait waits for the answer, and returns what the call has failed with.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.over:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitAnyway waits for the answer although helping the engine has failed.
func (c *call) waitAnyway(ctx context.Context, failure error) error {
	if err := c.wait(ctx); err != nil {
		return errors.Join(err, failure)
	}
	return nil
}

// thawer thaws containers, also if the engine is stuck.
type thawer struct {
	docker Thawer
	open   OpenFreezer
	doubts time.Duration // for how long it does not believe that somebody else has thawed a container
}

// ask asks the engine to thaw a container, and sees to it that the engine can.
func (t thawer) ask(ctx context.Context, id string) error {
	c := startCall(func() error { return t.docker.ContainerUnpause(ctx, id) })
	if c.within(ctx, stuckAfter) && !foundNothingFrozen(c.err) {
		return c.err
	}
	if ctx.Err() != nil {
		return c.wait(ctx)
	}
	return t.unstick(ctx, id, c)
}

// helpTries is how often an engine is helped that then does not thaw the container.
const helpTries = 5

// unstick helps an engine whose call does not end because the thaw does not, or whose thaw has failed
// because the processes ran. If no freezer can be had, it waits: the engine may only be slow. When
// it gives up, the processes run.
func (t thawer) unstick(ctx context.Context, id string, c *call) error {
	past, err := t.open(ctx)
	if err != nil {
		return c.waitAnyway(ctx, err)
	}
	defer func() { _ = past.Close() }() // it ends with this program
	for range helpTries {
		var paused bool
		if paused, err = t.letPass(ctx, past, id, c); !paused {
			return err
		}
		if err != nil { // the kernel could not freeze them again; it may the next time
			continue
		}
		c = startCall(func() error { return t.docker.ContainerUnpause(ctx, id) })
		switch {
		case !c.within(ctx, stuckAfter):
			err = errors.New("the engine does not answer")
		case !refusedThaw(c.err):
			return c.err
		default:
			err = c.err
		}
	}
	return errors.Join(err, past.Set(ctx, id, false))
}

// HelpToAnswer gets an engine that is stuck with a container, which somebody else has paused, to answer
// what is asked about it. It does nothing if the engine answers.
func (e *Engine) HelpToAnswer(ctx context.Context, id string) error {
	look := startCall(func() error {
		_, _, err := e.ContainerInspectWithRaw(ctx, id, false)
		return err
	})
	if look.within(ctx, stuckAfter) || ctx.Err() != nil {
		return nil
	}
	past, err := e.freezer(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = past.Close() }() // it ends with this program
	_, err = e.thawer().letPass(ctx, past, id, look)
	return err
}

// letPass thaws the processes until the call has ended, and then makes them what the engine takes them
// for: paused says that this is frozen. They run after an error, and also if the call was a thaw that was
// refused and the engine does not show the container as paused for a while. If the engine itself refused it, that is the error.
func (t thawer) letPass(ctx context.Context, past Freezer, id string, c *call) (paused bool, err error) {
	if err := past.Set(ctx, id, false); err != nil {
		return false, c.waitAnyway(ctx, err)
	}
	said := c.wait(ctx)
	if ctx.Err() != nil {
		return false, said
	}
	patience := time.Duration(0)
	if refusedThaw(said) {
		patience = contradictionPatience
	}
	if paused, err = t.awaitPaused(ctx, id, patience); err != nil {
		return false, err
	}
	switch {
	case paused:
		return true, past.Set(ctx, id, true)
	case isNotPaused(said):
		return false, said
	}
	return false, nil
}

// awaitPaused waits until the engine shows a container as paused, but not longer than some time: it looks
// at least once.
func (t thawer) awaitPaused(ctx context.Context, id string, limit time.Duration) (paused bool, err error) {
	within, stop := context.WithTimeout(ctx, limit)
	defer stop()
	err = Poll(within, func() (bool, error) {
		paused, err = t.isPaused(ctx, id)
		return paused, err
	})
	if within.Err() != nil && errors.Is(err, within.Err()) {
		return false, context.Cause(ctx)
	}
	return paused, err
}

func (t thawer) isPaused(ctx context.Context, id string) (bool, error) {
	c, _, err := t.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return false, fmt.Errorf("inspect container %s: %w", Shorten(id), err)
	}
	return c.State.Paused, nil
}

// refusedThaw tells whether a thaw failed because the container runs, for all that the engine or the
// runtime knows. A busy engine 20.10 hears late of what its runtime has done, so one of them may be wrong.
func refusedThaw(err error) bool { return foundNothingFrozen(err) || isNotPaused(err) }

// foundNothingFrozen tells whether a thaw failed in the runtime, which knows whether processes are
// frozen. The engine itself, which takes note of it, says "is not paused".
func foundNothingFrozen(err error) bool {
	return err != nil && strings.Contains(err.Error(), "container not paused")
}
