//go:build linux

package store

import (
	"fmt"

	"github.com/containerd/errdefs"
)

// DamagedError means that something in the store is not what it was.
type DamagedError struct {
	// Path is the file in the volume that is affected, if it is one.
	Path string
	// Pack is the file in the store, and Offset where in it; -1 if it is not known.
	Pack   string
	Offset int64
	Reason string
}

// Error implements error.
func (e *DamagedError) Error() string {
	where := e.Pack
	if e.Offset >= 0 {
		where = fmt.Sprintf("%s at offset %d", e.Pack, e.Offset)
	}
	if e.Path == "" {
		return fmt.Sprintf("%s is damaged: %s", where, e.Reason)
	}
	return fmt.Sprintf("the copy of %q in %s is damaged: %s", e.Path, where, e.Reason)
}

// Unwrap makes it a loss of data.
func (e *DamagedError) Unwrap() error { return errdefs.ErrDataLoss }

// VersionError means that a newer program has made the store.
type VersionError struct{ Found string }

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the store has format %q, this version of docker snapshot knows %q only: update it", e.Found, formatLine)
}

// Unwrap makes it a failed precondition.
func (e *VersionError) Unwrap() error { return errdefs.ErrFailedPrecondition }
