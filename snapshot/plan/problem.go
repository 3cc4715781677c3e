package plan

import (
	"strings"

	cerrdefs "github.com/containerd/errdefs"
)

// ProblemKind is a reason why a restore cannot be done as asked. The commands
// know which flag solves which.
type ProblemKind string

// The kinds of problems that are found before anything is made.
const (
	ProblemNameTaken    ProblemKind = "name-taken"     // Subject: container name
	ProblemNoNetwork    ProblemKind = "no-network"     // Subject: network name
	ProblemNoBindSource ProblemKind = "no-bind-source" // Subject: path on the engine's host
	ProblemNoDevice     ProblemKind = "no-device"      // Subject: path on the engine's host
	ProblemNoRuntime    ProblemKind = "no-runtime"     // Subject: runtime name
	ProblemNoContainer  ProblemKind = "no-container"   // Subject: container whose namespace, link or volumes are asked for
	ProblemNoVolume     ProblemKind = "no-volume"      // Subject: volume that is gone
	ProblemPortTaken    ProblemKind = "port-taken"     // Subject: host port
	ProblemVolumeInUse  ProblemKind = "volume-in-use"  // Subject: volume
	ProblemDependent    ProblemKind = "dependent"      // Subject: container that lives in a namespace of this one
	ProblemAddressTaken ProblemKind = "address-taken"  // Subject: fixed address
	ProblemUnsaved      ProblemKind = "unsaved"        // Subject: volume that a safety snapshot would not hold
	ProblemOneShot      ProblemKind = "one-shot"       // Subject: container that goes when it stops
	ProblemOtherOneShot ProblemKind = "other-one-shot" // Subject: container that would have to be stopped, and goes when it stops
	ProblemArchive      ProblemKind = "archive"        // Subject: volume whose archive is damaged
	ProblemNoArchive    ProblemKind = "no-archive"     // Subject: volume whose archive the store does not hold
	ProblemNoSpace      ProblemKind = "no-space"       // Subject: volume that has no room for what it held
	ProblemNotHeld      ProblemKind = "not-held"       // Subject: volume that was named
	ProblemRenamed      ProblemKind = "renamed"        // Subject: what the captured container is called now
	ProblemDead         ProblemKind = "dead"           // Subject: container that the engine could not remove to the end
	ProblemHostAccess   ProblemKind = "host-access"    // Subject: what it asks for
)

// Problem is one such reason.
type Problem struct {
	Kind    ProblemKind
	Subject string
	Text    string // the whole finding, for people
}

// ProblemsError holds everything that stands against a restore, found before
// anything was made.
type ProblemsError struct{ Problems []Problem }

func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Text
	}
	return "cannot restore:\n  " + strings.Join(lines, "\n  ")
}

// Unwrap gives the error its class.
func (e *ProblemsError) Unwrap() error { return cerrdefs.ErrFailedPrecondition }
