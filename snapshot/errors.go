package snapshot

import (
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// NotFoundError is returned for a word that names no snapshot.
// It is an errdefs not-found error.
type NotFoundError struct {
	Word   string
	Reason string // what there is instead, if that is known
}

func (e *NotFoundError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return "no such snapshot: " + e.Word
}

// Unwrap gives the error its class.
func (e *NotFoundError) Unwrap() error { return cerrdefs.ErrNotFound }

// AmbiguousError is returned for a word that names more than one snapshot.
type AmbiguousError struct {
	Word       string
	Candidates []string // references, newest first
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous, it could be any of:\n  %s", e.Word, strings.Join(e.Candidates, "\n  "))
}

// Unwrap gives the error its class.
func (e *AmbiguousError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// NameTakenError is returned by Create for a name that a snapshot of the
// container has already, or something else that --reuse must not replace.
type NameTakenError struct {
	Ref   string
	Reuse bool // that would replace it
}

func (e *NameTakenError) Error() string {
	if !e.Reuse {
		return fmt.Sprintf("%s exists already, and is not a snapshot of this container that could be replaced", e.Ref)
	}
	return fmt.Sprintf("snapshot %s exists already", e.Ref)
}

// Unwrap gives the error its class.
func (e *NameTakenError) Unwrap() error { return cerrdefs.ErrAlreadyExists }

// PinnedError is returned for a pinned snapshot by Remove, and by Create if it was
// to replace it.
type PinnedError struct {
	ID       labels.ID
	Replaced bool // by Create
}

func (e *PinnedError) Error() string { return fmt.Sprintf("snapshot %s is pinned", e.ID) }

// Unwrap gives the error its class.
func (e *PinnedError) Unwrap() error { return cerrdefs.ErrFailedPrecondition }

// FreezeError is returned by Create if a container cannot be paused: rootless
// engines, for one, need cgroup v2 for that.
type FreezeError struct {
	Container string // its ID
	Err       error
}

func (e *FreezeError) Error() string {
	return fmt.Sprintf("freeze container %s: %v", shorten(e.Container), e.Err)
}

// Unwrap returns the engine's error.
func (e *FreezeError) Unwrap() error { return e.Err }

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
