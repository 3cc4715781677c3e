package dockerop

import (
	"context"
	"time"
)

// waitPoll is how often a container's state is looked at.
const waitPoll = 50 * time.Millisecond

// Poll calls done until it says so, or fails, or ctx ends.
func Poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(waitPoll)
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
