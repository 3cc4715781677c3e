package dockerop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// CleanupTimeout bounds what is done after a failure or Ctrl-C. It leaves a
// slow engine time to answer, and a user's patience intact.
const CleanupTimeout = 20 * time.Second

// Undo is what takes back a half-done operation.
type Undo struct {
	steps []func(context.Context) error
	P     plan.Progress // may be nil
}

func (u *Undo) Add(f func(context.Context) error) { u.steps = append(u.steps, f) }

// Unless takes everything back, newest first, if *err is set. It works on a
// context that survives Ctrl-C, and waits for an engine that cannot be reached.
// Call it as:
//
//	defer func() { u.unless(ctx, &err) }()
func (u *Undo) Unless(ctx context.Context, err *error) {
	if *err == nil {
		return
	}
	ctx, cancel := Cleanup(ctx)
	defer cancel()
	for _, f := range slices.Backward(u.steps) {
		*err = errors.Join(*err, insist(ctx, f, u.P))
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

// Cleanup returns a context for cleaning up, which outlives ctx but ends.
func Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), CleanupTimeout)
}
