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

// unstick helps an engine whose call does not end because the thaw does not, or whose thaw has failed
// because the processes ran. If no freezer can be had, it waits: the engine may only be slow.
func (t thawer) unstick(ctx context.Context, id string, c *call) error {
	past, err := t.open(ctx)
	if err != nil {
		return c.waitAnyway(ctx, err)
	}
	defer func() { _ = past.Close() }() // it ends with this program
	for {
		paused, err := t.letPass(ctx, past, id, c)
		if err != nil || !paused {
			return err
		}
		c = startCall(func() error { return t.docker.ContainerUnpause(ctx, id) })
		if !c.within(ctx, stuckAfter) {
			continue
		}
		if c.err != nil && isNotPaused(c.err) { // somebody else was faster
			return errors.Join(c.err, past.Set(ctx, id, false))
		}
		return c.err
	}
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
	_, err = thawer{docker: e.Docker, open: e.freezer}.letPass(ctx, past, id, look)
	return err
}

// letPass thaws the processes until the call has ended, and then makes them what the engine takes them
// for: paused says that this is frozen.
func (t thawer) letPass(ctx context.Context, past Freezer, id string, c *call) (paused bool, err error) {
	if err := past.Set(ctx, id, false); err != nil {
		return false, c.waitAnyway(ctx, err)
	}
	if err := c.wait(ctx); ctx.Err() != nil {
		return false, err
	}
	if paused, err = t.isPaused(ctx, id); err != nil || !paused {
		return false, err
	}
	return true, past.Set(ctx, id, true)
}

func (t thawer) isPaused(ctx context.Context, id string) (bool, error) {
	c, _, err := t.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return false, fmt.Errorf("inspect container %s: %w", Shorten(id), err)
	}
	return c.State.Paused, nil
}

// foundNothingFrozen tells whether a thaw failed in the runtime, which knows whether processes are
// frozen. The engine itself, which takes note of it, says "is not paused".
func foundNothingFrozen(err error) bool {
	return err != nil && strings.Contains(err.Error(), "container not paused")
}
