package dockerop

import (
	"context"
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
)

// RemoveVolumes removes what was made for a restore that was taken back.
func (e *Engine) RemoveVolumes(ctx context.Context, names []string) error {
	var failed error
	for _, name := range names {
		err := e.VolumeRemove(context.WithoutCancel(ctx), name, false)
		if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) { // conflict: somebody uses it by now
			failed = errors.Join(failed, fmt.Errorf("remove volume %s: %w", name, err))
		}
	}
	return failed
}
