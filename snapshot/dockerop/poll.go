package dockerop

import (
	"context"
	"time"
)

// waitPoll is the time between two calls of done.
const waitPoll = 50 * time.Millisecond

// Poll calls done until it returns true or an error, or ctx ends. It returns done's error, or the
// cause of ctx's end.
func Poll(ctx context.Context, done func() (bool, error)) error {
	return pollEvery(ctx, waitPoll, done)
}

func pollEvery(ctx context.Context, pause time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		over, err := done()
		if over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
