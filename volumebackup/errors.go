package volumebackup

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/labels"
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
	Snapshot string // its ID
	Volume   string
	Store    string
	Err      error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the content of %s in snapshot %s is not in store %s", labels.DescribeKey(e.Volume), e.Snapshot, e.Store)
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
	return &MissingError{Snapshot: t.Snapshot, Volume: cmp.Or(t.Origin, t.Volume), Store: s.store, Err: err}
}

// LimitError means that a mount has more than may be captured of it. Nothing was stored.
type LimitError struct {
	Key string // of the mount, see [labels.Mount.Key]
	protocol.Exceeded
}

func (e *LimitError) Error() string {
	var over []string
	if e.Limits.Entries > 0 && e.Entries > e.Limits.Entries {
		over = append(over, fmt.Sprintf("it has %d entries, of %d at most", e.Entries, e.Limits.Entries))
	}
	if e.Limits.Bytes > 0 && e.Bytes > e.Limits.Bytes {
		over = append(over, fmt.Sprintf("it has %s (%d bytes), of %s at most", units.BytesSize(float64(e.Bytes)), e.Bytes, units.BytesSize(float64(e.Limits.Bytes))))
	}
	return fmt.Sprintf("%s is too large to be captured: %s", labels.DescribeKey(e.Key), strings.Join(over, "; "))
}

// Unwrap gives the error its class.
func (e *LimitError) Unwrap() error { return protocol.TooLarge }

// asLimit returns what a worker said if it was that a mount is too large; else nil.
func asLimit(r protocol.BeginRequest, err error) *LimitError {
	said, ok := errors.AsType[*protocol.Error](err)
	if !ok || said.Exceeded == nil {
		return nil
	}
	e := &LimitError{Exceeded: *said.Exceeded}
	for _, m := range r.Mounts {
		if m.Number == said.Exceeded.Mount {
			e.Key = m.Key
		}
	}
	return e
}
