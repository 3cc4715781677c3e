package archives

import (
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// MaxWarnings is how many entries that could not be kept exactly are named.
const MaxWarnings = 20

// Progress passes on what a worker tells.
func Progress(p plan.Progress) volumebackup.Progress {
	warned := 0
	return func(e protocol.Event) {
		switch {
		case p == nil:
		case e.Progress != nil:
			p(plan.Event{Phase: "volumes", Text: workerPhase(e.Progress.Phase), Current: e.Progress.Bytes, Total: e.Progress.Total, Files: e.Progress.Files})
		case e.Warning != nil:
			warned++
			switch {
			case warned <= MaxWarnings:
				p.Warn("volumes", describeWarning(*e.Warning))
			case warned == MaxWarnings+1:
				p.Warn("volumes", "there are more of these")
			}
		}
	}
}

// workerPhase says in words what a worker does. What it says in words itself stays.
func workerPhase(phase string) string {
	switch protocol.Op(phase) {
	case protocol.OpPass:
		return "reading volumes"
	case protocol.OpPublish:
		return "writing to the store"
	case protocol.OpRestore:
		return "restoring volumes"
	default:
		return phase
	}
}

func describeWarning(w protocol.Warning) string {
	if w.Volume == "" { // it is about none
		return w.Message
	}
	if w.Path == "" {
		return fmt.Sprintf("volume %s: %s", w.Volume, w.Message)
	}
	return fmt.Sprintf("volume %s: %s: %s", w.Volume, w.Path, w.Message)
}
