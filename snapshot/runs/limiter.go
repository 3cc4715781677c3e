package runs

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// Limit applies the limits to all snapshots.
type Limit func(ctx context.Context, o retention.Options, p plan.Progress)

// limiter applies the limits beside a run: neither the command nor the next snapshot waits for it.
type limiter struct {
	due  chan struct{} // full while there is something to do that has not begun
	over chan struct{}
}

func startLimiter(apply func()) *limiter {
	l := &limiter{due: make(chan struct{}, 1), over: make(chan struct{})}
	go func() {
		defer close(l.over)
		for range l.due {
			apply()
		}
	}()
	return l
}

// request has the limits applied once more.
func (l *limiter) request() {
	select {
	case l.due <- struct{}{}:
	default: // that has not begun yet, so it sees the latest snapshot
	}
}

// finish waits until what was requested is done. Nothing may be requested after that.
func (l *limiter) finish() {
	close(l.due)
	<-l.over
}

// applyLimits removes what is beyond the limits: of the run's own container those that hold for the
// run, and of others their own.
func (t *run) applyLimits(ctx context.Context) {
	t.limit(ctx, retention.Options{
		Policy: t.Policy, Known: map[string]retention.Policy{t.session.Container: t.policy}, Automatic: true,
	}, t.p)
}
