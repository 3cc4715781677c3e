package dockerop

import (
	"context"
	"errors"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// cleanupTimeout bounds what is done after a failure or Ctrl-C. It is long enough for a slow engine
// to answer, and short enough for a user to wait.
const cleanupTimeout = 20 * time.Second

// Rollback is the stack of steps that roll back an operation which fails halfway. The zero value is
// empty.
type Rollback struct {
	steps    []func(context.Context) error
	Progress plan.Progress // may be nil
}

// Add puts a step on the stack, usually just before the call that it would roll back: a lost answer
// may hide a success.
func (r *Rollback) Add(f func(context.Context) error) { r.steps = append(r.steps, f) }

// Unless runs the steps, newest first, if *err is set, and joins their errors to it. It works on a
// context that survives Ctrl-C, and waits for an engine that cannot be reached or is ending. Call it as
//
//	defer func() { rollback.Unless(ctx, &err) }()
func (r *Rollback) Unless(ctx context.Context, err *error) {
	if *err == nil {
		return
	}
	ctx, cancel := Cleanup(ctx)
	defer cancel()
	for _, f := range slices.Backward(r.steps) {
		*err = errors.Join(*err, insist(ctx, f, r.Progress))
	}
}

// insistPause is how long insist waits before it asks the engine again.
const insistPause = 200 * time.Millisecond

// endingTime is for how long insist asks again if the engine fails by itself (status 500). One that ends in order still answers
// when it has closed what it would need: "database not open".
const endingTime = 5 * time.Second

// insist repeats a step for as long as the engine cannot be reached, until ctx ends, or is about to end: what it does not roll
// back would stay.
func insist(ctx context.Context, step func(context.Context) error, p plan.Progress) error {
	ending, cancel := context.WithTimeout(ctx, endingTime)
	defer cancel()
	tick := time.NewTicker(insistPause)
	defer tick.Stop()
	for {
		err := step(ctx)
		isEnding := cerrdefs.IsInternal(err) && ending.Err() == nil
		if !isEnding && !client.IsErrConnectionFailed(err) {
			return err
		}
		p.Status("undo", "waiting for the engine, to roll back what was begun")
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// outlive returns a context for a call that changes something and would be undone after Ctrl-C. It ends [cleanupTimeout] after ctx
// has: an engine goes on with a call whose client has hung up, and might do it after it was undone.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(cleanupTimeout):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// Cleanup returns a context for cleaning up. It outlives ctx, but ends after [cleanupTimeout].
func Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}
