package archives

import (
	"cmp"
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

// workerPhases says in words what a worker is doing.
var workerPhases = map[protocol.Op]string{
	protocol.OpBegin:   "counting files",
	protocol.OpPass:    "reading volumes",
	protocol.OpPublish: "writing to the store",
	protocol.OpExtract: "copying files",
	protocol.OpRestore: "restoring volumes",
	protocol.OpFill:    "restoring volumes",
	protocol.OpCheck:   "checking volumes",
	protocol.OpVerify:  "checking volumes",
	protocol.OpSecure:  "checking what it takes to put them back",
	protocol.OpDiff:    "comparing volumes",
	protocol.OpWalk:    "listing the root filesystem",
	protocol.OpUsage:   "measuring what they occupy",
	protocol.OpRemove:  "removing archives",
	protocol.OpDiscard: "removing archives",

	protocol.OpAttach:     "copying attachments",
	protocol.OpAttachment: "copying attachments",

	protocol.OpFreeze: "helping the engine to thaw a container",

	protocol.OpList:    "looking into the store",
	protocol.OpLost:    "looking into the store",
	protocol.OpRecord:  "looking into the store",
	protocol.OpJournal: "looking into the store",
	protocol.OpKnown:   "looking into the store",
	protocol.OpLearn:   "looking into the store",
	protocol.OpRecall:  "looking into the store",
}

// workerPhase says in words what a worker is doing. A phase that is in words already stays.
func workerPhase(phase string) string { return cmp.Or(workerPhases[protocol.Op(phase)], phase) }

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
