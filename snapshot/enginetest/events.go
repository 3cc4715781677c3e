package enginetest

import (
	"sync"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Events collects what an operation reports.
type Events struct {
	mu  sync.Mutex
	All []plan.Event
}

// Progress is the [plan.Progress] to give to the operation.
func (e *Events) Progress(event plan.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.All = append(e.All, event)
}

// Warnings returns the texts of the warnings.
func (e *Events) Warnings() []string {
	var texts []string
	for _, event := range e.All {
		if event.Level == plan.LevelWarning {
			texts = append(texts, event.Text)
		}
	}
	return texts
}

// Notes returns the texts of the notes. It is not nil.
func (e *Events) Notes() []string {
	texts := []string{}
	for _, event := range e.All {
		if event.Level == plan.LevelNote {
			texts = append(texts, event.Text)
		}
	}
	return texts
}
