package protocol

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
)

// Class is the kind of an error. It survives the pipe: errors.Is(err,
// protocol.Damaged) holds on both sides, as does the errdefs class that belongs to it.
type Class string

// The classes.
const (
	NotFound     Class = "not-found"
	Conflict     Class = "conflict"
	Damaged      Class = "damaged"
	NoSpace      Class = "no-space"
	NewerVersion Class = "newer-version"
	Invalid      Class = "invalid"
	TooLarge     Class = "too-large"
	Canceled     Class = "canceled"
	Internal     Class = "internal"
)

// Error implements error, so that a class can be the target of errors.Is.
func (c Class) Error() string { return string(c) }

// Unwrap returns the errdefs error by which the rest of the program knows the class.
func (c Class) Unwrap() error {
	switch c {
	case NotFound:
		return errdefs.ErrNotFound
	case Conflict:
		return errdefs.ErrConflict
	case Damaged:
		return errdefs.ErrDataLoss
	case NoSpace:
		return errdefs.ErrResourceExhausted
	case NewerVersion:
		return errdefs.ErrFailedPrecondition
	case Invalid:
		return errdefs.ErrInvalidArgument
	case TooLarge:
		return errdefs.ErrOutOfRange
	case Canceled:
		return context.Canceled
	default:
		return errdefs.ErrInternal
	}
}

// Error is a failure that the worker reports.
type Error struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`
	// Path is the entry of the volume that it is about, if any.
	Path Path `json:"path,omitempty"`
	// Pack and Offset say where in the store the damage is, if that is known.
	Pack   string `json:"pack,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	// Exceeded says which limit is in the way of a capture, if one is.
	Exceeded *Exceeded `json:"exceeded,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the class.
func (e *Error) Unwrap() error { return e.Class }

// errLost means that the stream ended before the answer.
var errLost = errors.New("the worker ended before it answered")

// VersionError means that the worker speaks another version of the protocol.
type VersionError struct{ Worker int }

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the worker speaks protocol version %d, this client speaks %d", e.Worker, Version)
}

// Unwrap makes it a failed precondition.
func (e *VersionError) Unwrap() error { return errdefs.ErrFailedPrecondition }
