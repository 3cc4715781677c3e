package snapshot

import (
	"slices"
	"time"
)

// watch measures the phases of an operation.
type watch struct {
	now     func() time.Time
	started time.Time
	last    time.Time
	laps    Timings
}

func (e *Engine) startWatch() *watch {
	now := e.now()
	return &watch{now: e.now, started: now, last: now}
}

// lap ends a phase, or a further part of one.
func (w *watch) lap(phase string) {
	now := w.now()
	took := now.Sub(w.last)
	w.last = now
	if at := slices.IndexFunc(w.laps, func(t Timing) bool { return t.Phase == phase }); at >= 0 {
		w.laps[at].Duration += took
		return
	}
	w.laps = append(w.laps, Timing{phase, took})
}

// done returns the phases and their total.
func (w *watch) done() Timings {
	return append(w.laps, Timing{"total", w.now().Sub(w.started)})
}

// skip says that there was nothing to do in these phases.
func (w *watch) skip(phases ...string) {
	for _, phase := range phases {
		w.laps = append(w.laps, Timing{Phase: phase})
	}
}
