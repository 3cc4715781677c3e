package catalog

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
