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

// retry repeats a call for as long as its error passes by itself, until patience runs out. Then it returns that error, which
// says more than that time is up.
func retry(ctx context.Context, patience time.Duration, passes func(error) bool, call func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var said error
	err := Poll(within, func() (bool, error) {
		err := call(within)
		if err != nil && passes(err) {
			said = err
			return false, nil
		}
		return true, err
	})
	if err != nil && said != nil && within.Err() != nil && ctx.Err() == nil {
		return said
	}
	return err
}
