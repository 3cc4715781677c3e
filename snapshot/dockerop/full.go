package dockerop

import "strings"

// FullError says that the engine's disk has no room left for what was to be made there.
type FullError struct{ Err error }

func (e *FullError) Error() string { return e.Err.Error() }

// Unwrap returns the engine's error.
func (e *FullError) Unwrap() error { return e.Err }

// AsFull is an engine's error, as a [FullError] if that is what it says. Engines have no class for
// it: it is an internal error with the kernel's words.
func AsFull(err error) error {
	if err == nil || !strings.Contains(err.Error(), "no space left on device") && !strings.Contains(err.Error(), "disk quota exceeded") {
		return err
	}
	return &FullError{err}
}
