package dockerop

import cerrdefs "github.com/containerd/errdefs"

// NoContainerError says that there is no container of that name or ID. It has the engine's own
// words and class.
type NoContainerError struct{ Err error }

func (e *NoContainerError) Error() string { return e.Err.Error() }

// Unwrap returns the engine's error.
func (e *NoContainerError) Unwrap() error { return e.Err }

// AsNoContainer is an engine's error about a container, as a [NoContainerError] if that is what it
// says.
func AsNoContainer(err error) error {
	if !cerrdefs.IsNotFound(err) {
		return err
	}
	return &NoContainerError{err}
}
