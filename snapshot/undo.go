package snapshot

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// cleanupTimeout bounds what is done after a failure or Ctrl-C. It leaves a
// slow engine time to answer, and a user's patience intact.
const cleanupTimeout = 20 * time.Second

// undo is what takes back a half-done operation.
type undo struct {
	steps []func(context.Context) error
	p     plan.Progress // may be nil
}

func (u *undo) add(f func(context.Context) error) { u.steps = append(u.steps, f) }

// unless takes everything back, newest first, if *err is set. It works on a
// context that survives Ctrl-C, and waits for an engine that cannot be reached.
// Call it as:
//
//	defer func() { u.unless(ctx, &err) }()
func (u *undo) unless(ctx context.Context, err *error) {
	if *err == nil {
		return
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	for _, f := range slices.Backward(u.steps) {
		*err = errors.Join(*err, insist(ctx, f, u.p))
	}
}

// insistPause is how long is waited before the engine is asked again.
const insistPause = 200 * time.Millisecond

// insist repeats a step that takes something back for as long as the engine cannot
// be reached: what it does not take back would stay.
func insist(ctx context.Context, step func(context.Context) error, p plan.Progress) error {
	tick := time.NewTicker(insistPause)
	defer tick.Stop()
	for {
		err := step(ctx)
		if !client.IsErrConnectionFailed(err) {
			return err
		}
		p.Status("undo", "waiting for the engine, to take back what was begun")
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// cleanup returns a context for cleaning up, which outlives ctx but ends.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}
