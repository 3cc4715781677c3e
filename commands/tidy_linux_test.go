package commands

import (
	"context"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
)

// listingEngine takes its time for lists.
type listingEngine struct {
	*fakeEngine

	list func(context.Context)
}

func (e listingEngine) Prune(ctx context.Context, o removal.PruneOptions, p plan.Progress) (removal.Pruned, error) {
	e.list(ctx)
	return e.fakeEngine.Prune(ctx, o, p)
}

func (e listingEngine) CountAtTimes(ctx context.Context, _ string) (count snapshot.Count, counted bool, err error) {
	e.list(ctx)
	return snapshot.Count{}, false, ctx.Err()
}

// However many snapshots there are, tidies take the engine for a tenth of the time: each rests nine times as long as it was at work.
func TestATidyRestsBeforeTheNext(t *testing.T) {
	for _, tc := range []struct{ work, rest time.Duration }{
		{10 * time.Millisecond, 90 * time.Millisecond},
		{7 * time.Second, 63 * time.Second},
		{time.Hour, tidyRestMost},
		{-time.Hour, 0}, // the clock was set back
	} {
		f := newFixture()
		d := f.deps()
		fast, waited := hurriedClock()
		worked := time.Duration(0)
		d.global = []string{"--host", t.TempDir()}
		d.clock = clock{now: func() time.Time { return fast.now().Add(worked) }, after: func(pause time.Duration, then func()) func() bool {
			if pause != tidyDelay {
				_, isFree := takeTurn(turnName(d.global, turnWork))
				assert.Assert(t, !isFree) // another would begin
			}
			return fast.after(pause, then)
		}}
		d.engine = func(volumeOptions) (engine, error) {
			return listingEngine{f.engine, func(context.Context) { worked = tc.work }}, nil
		}
		assert.NilError(t, runTidy(t.Context(), d, tidyOptions{}))
		want := []time.Duration{tidyDelay}
		if tc.rest > 0 {
			want = append(want, tc.rest)
		}
		assert.DeepEqual(t, *waited, want)
	}
}

// Counting ends after a while, however long the snapshot takes: it would slow that down.
func TestCountingIsBounded(t *testing.T) {
	f := newFixture()
	d := f.deps()
	d.clock = clock{now: time.Now, after: afterFunc}
	ended := make(chan error, 1)
	warn := d.countAside(t.Context(), listingEngine{f.engine, func(ctx context.Context) {
		<-ctx.Done()
		ended <- ctx.Err()
	}}, capture.Options{Container: "web"})
	assert.ErrorIs(t, <-ended, context.Canceled)
	warn(firstSnapshot(), nil) // does not wait either
}
