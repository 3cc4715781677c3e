package runs

import (
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
)

// OtherContainerError says that a run cannot be continued, because it was a run of another container.
// It is an errdefs conflict.
type OtherContainerError struct{ RunID, Container string }

func (e *OtherContainerError) Error() string {
	return fmt.Sprintf("run %s is a run of container %s", e.RunID, e.Container)
}

// Unwrap gives the error its class.
func (e *OtherContainerError) Unwrap() error { return cerrdefs.ErrConflict }
