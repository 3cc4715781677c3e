package catalog

import (
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// NotFoundError says that a word names no snapshot. It is an errdefs not-found error.
type NotFoundError struct {
	Word   string
	Reason string // the whole message, if more is known
	Lost   bool   // there are snapshots that have lost their images
	// OnlySafety is set if the word names a container that has snapshots, all of them safety snapshots.
	OnlySafety bool
}

func (e *NotFoundError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return "no such snapshot: " + e.Word
}

// Unwrap gives the error its class.
func (e *NotFoundError) Unwrap() error { return cerrdefs.ErrNotFound }

// AmbiguousError says that a word names more than one snapshot.
type AmbiguousError struct {
	Word       string
	Candidates []string // references, newest first
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous, it could be any of:\n  %s", e.Word, strings.Join(e.Candidates, "\n  "))
}

// Unwrap gives the error its class.
func (e *AmbiguousError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// ContainerError says that a word names a container, or a line of states, where only a snapshot will do.
type ContainerError struct {
	Name   string
	IsLine bool
}

func (e *ContainerError) Error() string {
	if e.IsLine {
		return e.Name + " is a line of states, not a single one"
	}
	return e.Name + " is a container, not a snapshot"
}

// Unwrap gives the error its class.
func (e *ContainerError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// NameTakenError says that a name is taken: by a snapshot of the same container, or by an image
// that a new snapshot must not replace.
type NameTakenError struct {
	Ref   string // container:name
	Tag   string // the tag of that name
	Reuse bool   // it may be replaced, if the user says so
}

func (e *NameTakenError) Error() string {
	if !e.Reuse {
		return fmt.Sprintf("%s exists already, and is not a snapshot of this container that could be replaced", e.Ref)
	}
	return fmt.Sprintf("snapshot %s exists already", e.Ref)
}

// Unwrap gives the error its class.
func (e *NameTakenError) Unwrap() error { return cerrdefs.ErrAlreadyExists }

// UnreadableError says that the labels of a snapshot cannot be read.
type UnreadableError struct {
	Ref string
	Err error
}

func (e *UnreadableError) Error() string { return fmt.Sprintf("read snapshot %s: %v", e.Ref, e.Err) }

// Unwrap is what is wrong with the labels.
func (e *UnreadableError) Unwrap() error { return e.Err }

// PinnedError says that a snapshot is pinned, and is therefore not removed.
type PinnedError struct {
	ID       labels.ID
	Name     string
	Replaced bool // it would have lost its name to a new snapshot, rather than been removed
}

func (e *PinnedError) Error() string {
	return fmt.Sprintf("snapshot %s is pinned", labels.Title(e.Name, e.ID))
}

// Unwrap gives the error its class.
func (e *PinnedError) Unwrap() error { return cerrdefs.ErrFailedPrecondition }
