package commands

import (
	"sync"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// stage shows progress, except while a command has the terminal for itself: then only warnings.
type stage struct {
	d       deps
	options progressOptions

	mu   sync.Mutex
	show display // nil: a command has the terminal
}

// newStage starts a display.
func newStage(d deps, o progressOptions) (*stage, error) {
	s := &stage{d: d, options: o}
	return s, s.open()
}

func (s *stage) open() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show, err = s.d.progress(s.options)
	return err
}

// close hands the terminal to a command, or ends the display.
func (s *stage) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.show != nil {
		s.show.close()
	}
	s.show = nil
}

// progress shows an event. Of notes it shows those of the run itself: a snapshot that is taken by itself
// does not say again and again what is not in it.
func (s *stage) progress(e plan.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Level == plan.LevelNote && e.Phase != notePhase:
	case s.show != nil:
		s.show.show(e)
	case e.Level == plan.LevelWarning:
		warnings{s.d.err}.show(e)
	}
}

// notePhase is the phase of notes about a run.
const notePhase = "run"
