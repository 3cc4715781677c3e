package volumebackup

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// FullError means that there is no room left in the store.
type FullError struct {
	Store string
	Err   error
}

func (e *FullError) Error() string { return fmt.Sprintf("store %s is full", e.Store) }

// Unwrap is what the worker said.
func (e *FullError) Unwrap() error { return e.Err }

// MissingError means that the store does not hold what a snapshot captured of a volume.
type MissingError struct {
	Volume string
	Store  string
	Err    error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the content of volume %s is not in store %s", e.Volume, e.Store)
}

// Unwrap is what the worker said.
func (e *MissingError) Unwrap() error { return e.Err }

// asFull is an error of a worker, or that the store is full if that is what it says.
func (s *session) asFull(err error) error {
	said, ok := errors.AsType[*protocol.Error](err)
	if ok && said.Class == protocol.NoSpace && strings.HasPrefix(string(said.Path), "/store/") {
		return &FullError{Store: s.store, Err: err}
	}
	return err
}

// missing is the error for an archive that is not there, as a worker said.
func (s *session) missing(t Target, err error) error {
	return &MissingError{Volume: cmp.Or(t.Origin, t.Volume), Store: s.store, Err: err}
}
