package plan

import (
	"slices"
	"time"
)

// Timings is how long each phase of an operation took, in order.
type Timings []Timing

// Timing is the duration of one phase.
type Timing struct {
	Phase    string
	Duration time.Duration
}

// Stopwatch measures the phases of an operation.
type Stopwatch struct {
	now     func() time.Time
	started time.Time
	last    time.Time
	laps    Timings
}

// StartWatch begins to measure by a clock.
func StartWatch(clock func() time.Time) *Stopwatch {
	now := clock()
	return &Stopwatch{now: clock, started: now, last: now}
}

// Lap ends a phase, or a further part of one.
func (w *Stopwatch) Lap(phase string) {
	now := w.now()
	took := now.Sub(w.last)
	w.last = now
	if at := slices.IndexFunc(w.laps, func(t Timing) bool { return t.Phase == phase }); at >= 0 {
		w.laps[at].Duration += took
		return
	}
	w.laps = append(w.laps, Timing{phase, took})
}

// Done returns the phases and their total.
func (w *Stopwatch) Done() Timings {
	return append(w.laps, Timing{"total", w.now().Sub(w.started)})
}

// Skip says that there was nothing to do in these phases.
func (w *Stopwatch) Skip(phases ...string) {
	for _, phase := range phases {
		w.laps = append(w.laps, Timing{Phase: phase})
	}
}
