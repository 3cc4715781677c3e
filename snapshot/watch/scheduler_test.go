package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

var start = time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)

// world is a scheduler with a clock, and snapshots that take a while.
type world struct {
	*Scheduler
	now   time.Time
	takes time.Duration
	ends  map[string]time.Time
	fails map[string]int // so many snapshots of this container fail
	log   []string
}

func newWorld(t *testing.T, policies map[string]Texts) *world {
	t.Helper()
	w := &world{Scheduler: New(), now: start, takes: time.Second, ends: map[string]time.Time{}, fails: map[string]int{}}
	for id, texts := range policies {
		p, err := texts.Parse()
		assert.NilError(t, err)
		w.Put(Container{ID: id, Name: id, Running: true, Policy: p}, w.now)
	}
	return w
}

// until lets time pass. It goes from one moment that the scheduler asks for to the next.
func (w *world) until(after time.Duration, took func(Decision)) {
	for end := start.Add(after); ; {
		for id, at := range w.ends {
			if !at.After(w.now) {
				delete(w.ends, id)
				w.fails[id]--
				w.Done(id, w.fails[id] >= 0, w.now)
			}
		}
		for _, d := range w.Due(w.now) {
			w.log = append(w.log, fmt.Sprintf("%s %s: %s", w.now.Sub(start), d.ID, d.Reason))
			w.ends[d.ID] = w.now.Add(w.takes)
			if took != nil {
				took(d)
			}
		}
		next := w.Next()
		for _, at := range w.ends {
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		if next.After(w.now) {
			w.now = next
		}
	}
}

func (w *world) said() string { return strings.Join(w.log, "\n") }

func TestTime(t *testing.T) {
	for name, tc := range map[string]struct {
		texts Texts
		hours int
		want  []string
	}{
		"by interval": {Texts{Interval: "7h"}, 24, []string{"7h0m0s a: every 7h0m0s", "14h0m0s a: every 7h0m0s", "21h0m0s a: every 7h0m0s"}},
		"by schedule": {Texts{Schedule: "30 2,14 * * *"}, 36, []string{"2h30m0s a: as scheduled", "14h30m0s a: as scheduled", "26h30m0s a: as scheduled"}},
		"by zone":     {Texts{Schedule: "TZ=Asia/Tokyo 0 12 * * *"}, 24, []string{"3h0m0s a: as scheduled"}},
		"on Sundays":  {Texts{Schedule: "0 1 * * 0"}, 24 * 9, []string{"25h0m0s a: as scheduled", "193h0m0s a: as scheduled"}},
		"never":       {Texts{Schedule: "0 0 30 2 *"}, 24 * 40, nil},
		"by both":     {Texts{Interval: "2h", Schedule: "0 2,3 * * *"}, 4, []string{"2h0m0s a: every 2h0m0s", "3h0m0s a: as scheduled", "4h0m0s a: every 2h0m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]Texts{"a": tc.texts})
			w.until(time.Duration(tc.hours)*time.Hour, nil)
			assert.Equal(t, w.said(), strings.Join(tc.want, "\n"))
		})
	}
}

func TestAnIntervalCountsFromTheLastSnapshot(t *testing.T) {
	for last, want := range map[time.Duration]string{
		-40 * time.Minute: "20m0s a: every 1h0m0s",
		-9 * time.Hour:    "0s a: every 1h0m0s",
		9 * time.Hour:     "1h0m0s a: every 1h0m0s", // another clock
	} {
		w := newWorld(t, nil)
		w.Put(Container{ID: "a", Name: "a", Running: true, Policy: Policy{Interval: time.Hour}, Last: start.Add(last)}, start)
		w.until(time.Hour, nil)
		assert.Equal(t, w.log[0], want)
	}
}

func TestWhatDoesNotRunIsNotCapturedByTime(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {Interval: "1h", Schedule: "15 * * * *"}})
	w.Put(Container{ID: "a", Name: "a"}, w.now)
	w.until(3*time.Hour+30*time.Minute, nil)
	assert.Equal(t, w.said(), "")
	w.Put(Container{ID: "a", Name: "a", Running: true}, w.now)
	w.until(4*time.Hour, nil)
	assert.Equal(t, w.said(), "3h30m0s a: every 1h0m0s", "one snapshot for all that was missed")
}

func TestEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		on   string
		what func(w *world)
		want []string
	}{
		"one":              {"die", func(w *world) { w.Event("a", Die, w.now) }, []string{"100ms a: die"}},
		"two that belong":  {"die,oom", func(w *world) { w.Event("a", OOM, w.now); w.Event("a", Die, w.now) }, []string{"100ms a: oom"}},
		"one of no matter": {"die,oom", func(w *world) { w.Event("a", Unhealthy, w.now) }, nil},
		"of another":       {"die", func(w *world) { w.Event("b", Die, w.now) }, nil},
		"one that nobody heard": {"die", func(w *world) {
			w.Put(Container{ID: "a", Name: "a"}, w.now)
			w.Put(Container{ID: "a", Name: "a"}, w.now)
		}, []string{"100ms a: die"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]Texts{"a": {On: tc.on}})
			tc.what(w)
			w.until(time.Hour, nil)
			assert.Equal(t, w.said(), strings.Join(tc.want, "\n"))
		})
	}
}

// A container that dies again and again is captured again and again, but not all the time.
func TestABurstQueuesOneSnapshot(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {On: "die"}})
	for i := range 100 {
		w.Event("a", Die, w.now)
		w.until(time.Duration(i+1)*100*time.Millisecond, nil)
	}
	w.until(time.Hour, nil)
	assert.Equal(t, w.said(), "100ms a: die\n11.1s a: die")
}

func TestMemoryCountsOnceUntilItHasFallen(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {Memory: "80%"}, "b": {Interval: "1d"}})
	for second, percent := range []float64{10, 79.9, 80, 90, 99, 79, 85, 74, 80, 10} {
		w.Memory("a", percent, w.now)
		w.Memory("b", percent, w.now)
		w.until(time.Duration(second+1)*20*time.Second, nil)
	}
	assert.Equal(t, w.said(), "40s a: memory at 80% of the limit\n2m40s a: memory at 80% of the limit")
}

func TestMemoryCountsAgainAfterARestart(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {Memory: "80%"}})
	w.Memory("a", 90, w.now)
	w.until(time.Minute, nil)
	w.Put(Container{ID: "a", Name: "a"}, w.now)
	w.Put(Container{ID: "a", Name: "a", Running: true}, w.now)
	w.Memory("a", 95, w.now)
	w.until(2*time.Minute, nil)
	assert.Equal(t, w.said(), "0s a: memory at 90% of the limit\n1m0s a: memory at 95% of the limit")
}

func TestWhatHappensMeanwhileQueuesOne(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {Interval: "1s", Memory: "80%"}})
	w.takes = 10 * time.Second
	w.until(5*time.Second, nil)
	w.Memory("a", 90, w.now)
	w.until(21*time.Second, nil)
	assert.Equal(t, w.said(), "1s a: every 1s\n11s a: memory at 90% of the limit\n21s a: every 1s")
}

func TestTwoContainersAreCapturedAtOnce(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {Schedule: "@hourly"}, "b": {Schedule: "@hourly"}, "c": {Schedule: "@hourly"}})
	w.until(time.Hour+time.Minute, nil)
	assert.Equal(t, w.said(), "1h0m0s a: as scheduled\n1h0m0s b: as scheduled\n1h0m1s c: as scheduled")
}

func TestAFailureIsTriedAgain(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {On: "die"}})
	w.fails["a"] = 100
	w.Event("a", Die, w.now)
	w.until(24*time.Hour, nil)
	assert.Equal(t, w.said(), "100ms a: die\n1m1.1s a: die\n3m2.1s a: die\n7m3.1s a: die\n15m4.1s a: die")

	w = newWorld(t, map[string]Texts{"a": {Interval: "12h"}})
	w.fails["a"] = 1
	w.until(24*time.Hour, nil)
	assert.Equal(t, w.said(), "12h0m0s a: every 12h0m0s\n12h1m1s a: every 12h0m0s\n24h0m0s a: every 12h0m0s")
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {Interval: "1h", On: "die"}})
	w.Event("a", Die, w.now)
	assert.Equal(t, len(w.Due(w.now.Add(time.Second))), 1)
	w.Remove("a")
	w.Done("a", true, w.now)
	w.Event("a", Die, w.now)
	w.Memory("a", 99, w.now)
	assert.Assert(t, w.Next().IsZero())
	assert.Equal(t, len(w.Watched()), 0)
}

// A day of snapshots every minute, from three containers that also die and fill their memory: nothing
// grows beyond its limit, and each snapshot that goes has a reason.
func TestADayAtTheLimits(t *testing.T) {
	w := newWorld(t, map[string]Texts{"a": {Interval: "1m"}, "b": {Interval: "1m", On: "die"}, "c": {Schedule: "* * * * *", Memory: "50%"}})
	var held []retention.Snapshot
	taken, most := 0, 0
	policy := retention.Default()
	policy.MaxSize, policy.MaxTotal = 0, 25
	for minute := range 24 * 60 {
		w.Event("b", Die, w.now)
		w.Put(Container{ID: "b", Name: "b", Running: true}, w.now)
		w.Memory("c", float64(minute%2)*90, w.now)
		w.until(time.Duration(minute+1)*time.Minute, func(d Decision) {
			taken++
			s := retention.Snapshot{Line: d.Name, Record: labels.Record{ID: labels.ID(fmt.Sprint(taken)), Created: w.now, Trigger: d.Trigger, Pinned: taken == 7}}
			held = append([]retention.Snapshot{s}, held...)
			decisions := retention.Decide(retention.Situation{Snapshots: held, Options: retention.Options{Policy: policy, Automatic: true}, Now: w.now})
			var kept []retention.Snapshot
			for i, decision := range decisions {
				assert.Assert(t, decision.Detail != "" || decision.Reason != "")
				if !decision.Removed {
					kept = append(kept, held[i])
				}
			}
			held = kept
			most = max(most, len(held))
		})
		assert.Assert(t, len(w.log) == taken && len(w.Watched()) == 3)
	}
	assert.Assert(t, taken > 3*24*60 && taken < 6*24*60, "%d", taken)
	assert.Equal(t, most, policy.MaxTotal+1, "with the pinned one")
}
