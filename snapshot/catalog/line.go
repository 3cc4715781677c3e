package catalog

import (
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// LineError says that a line and a container would have the same name: references could mean either. It
// is an errdefs already-exists error.
type LineError struct {
	Name   string
	IsLine bool // there is a line of that name already; else there is a container, or a snapshot of one
}

func (e *LineError) Error() string {
	if e.IsLine {
		return fmt.Sprintf("there is a line %s already, and a line cannot have the name of a container", e.Name)
	}
	return fmt.Sprintf("there is a container %s, or a snapshot of one, and a line cannot have the name of a container", e.Name)
}

// Unwrap gives the error its class.
func (e *LineError) Unwrap() error { return cerrdefs.ErrAlreadyExists }

// StateError says that a snapshot is a state, so that no container can be made of it. It is an errdefs
// invalid argument.
type StateError struct {
	ID   labels.ID
	Name string
	Line string
}

func (e *StateError) Error() string {
	return fmt.Sprintf("snapshot %s is a state of line %s, without a container", labels.Title(e.Name, e.ID), e.Line)
}

// Unwrap gives the error its class.
func (e *StateError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// CheckContainer fails with [StateError] if there is no container in the snapshot.
func (s Snapshot) CheckContainer() error {
	if s.Kind == labels.KindState {
		return &StateError{ID: s.ID, Name: s.Name, Line: s.Line}
	}
	return nil
}
