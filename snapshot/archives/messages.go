package archives

import (
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// maxWarnings is how many entries are named that could not be kept exactly.
const maxWarnings = 20

// Progress passes on to p what a worker reports. After maxWarnings warnings it only says that
// there are more.
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
			case warned <= maxWarnings:
				p.Warn("volumes", describeWarning(*e.Warning))
			case warned == maxWarnings+1:
				p.Warn("volumes", "there are more of these")
			}
		}
	}
}

// workerPhase says in words what a worker is doing. A phase that is in words already stays.
func workerPhase(phase string) string {
	switch protocol.Op(phase) {
	case protocol.OpBegin:
		return "counting files"
	case protocol.OpPass:
		return "reading volumes"
	case protocol.OpPublish:
		return "writing to the store"
	case protocol.OpExtract:
		return "copying files"
	case protocol.OpRestore:
		return "restoring volumes"
	default:
		return phase
	}
}

func describeWarning(w protocol.Warning) string {
	if w.Volume == "" { // it concerns none
		return w.Message
	}
	if w.Path == "" {
		return fmt.Sprintf("%s: %s", labels.DescribeKey(w.Volume), w.Message)
	}
	return fmt.Sprintf("%s: %s: %s", labels.DescribeKey(w.Volume), w.Path, w.Message)
}

// Problem turns what a worker says about the archive of a volume into a problem: it is damaged, or
// missing, or there is no room for its content. It returns other errors as errors.
func Problem(volume string, err error) ([]plan.Problem, error) {
	kind := plan.ProblemArchive
	switch {
	case err == nil:
		return nil, nil
	case cerrdefs.IsResourceExhausted(err):
		kind = plan.ProblemNoSpace
	case errors.Is(err, protocol.NotFound):
		kind = plan.ProblemNoArchive
	case !errors.Is(err, protocol.Damaged):
		return nil, err
	}
	return []plan.Problem{{Kind: kind, Subject: volume, Text: err.Error()}}, nil
}
