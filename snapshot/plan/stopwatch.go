package plan

import (
	"slices"
	"time"
)

// Timings say how long each phase of an operation took, in order.
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

// StartWatch starts a stopwatch that reads the time from clock.
func StartWatch(clock func() time.Time) *Stopwatch {
	now := clock()
	return &Stopwatch{now: clock, started: now, last: now}
}

// Lap ends a phase. If the phase has ended before, the time since the last lap is added to it.
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

// Done returns the phases and, as the last one, their total.
func (w *Stopwatch) Done() Timings {
	return append(w.laps, Timing{"total", w.now().Sub(w.started)})
}

// Skip adds phases in which there was nothing to do.
func (w *Stopwatch) Skip(phases ...string) {
	for _, phase := range phases {
		w.laps = append(w.laps, Timing{Phase: phase})
	}
}
