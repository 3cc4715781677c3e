package dockerop

import (
	"errors"
	"fmt"
	"strings"
)

// StaleTaskError says that a container cannot be started because the engine keeps a process of its earlier run. An engine 20.10
// with containerd 1.6 that is killed while a container ends takes the shim of it, a process that only waits, for a task that
// runs. Restarting the engine does not help; ending that process does.
type StaleTaskError struct {
	Container string // its ID
	Err       error
}

func (e *StaleTaskError) Error() string {
	return fmt.Sprintf("the engine keeps a process of the earlier run of container %s: %v", Shorten(e.Container), e.Err)
}

// Unwrap returns the engine's error.
func (e *StaleTaskError) Unwrap() error { return e.Err }

// asStaleTask is an engine's error about starting a container, as a [StaleTaskError] if that is what it says. Engines have no
// class for it: containerd's words come as an internal error, or as a conflict.
func asStaleTask(err error, id string) error {
	if err == nil || !saysStaleTask(err.Error()) {
		return err
	}
	return &StaleTaskError{Container: id, Err: err}
}

func isStaleTask(err error) bool {
	_, ok := errors.AsType[*StaleTaskError](err)
	return ok
}

func saysStaleTask(words string) bool {
	switch {
	case strings.Contains(words, "container with given ID already exists"):
		return true
	case strings.Contains(words, "failed to start shim"):
		return strings.Contains(words, "file exists")
	}
	return strings.Contains(words, "task ") && strings.Contains(words, ": already exists")
}
