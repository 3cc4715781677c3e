package dockerop

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// Stop stops a container; timeout is in seconds, nil for the container's own. A paused container is
// thawed first, because a frozen process cannot react to its stop signal. Stop succeeds if the
// container is gone.
func (e *Engine) Stop(ctx context.Context, id string, paused bool, timeout *int) error {
	if paused {
		if _, err := e.Thaw(ctx, []string{id}); err != nil {
			return err
		}
	}
	err := e.ContainerStop(ctx, id, container.StopOptions{Timeout: timeout})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// SetRestartPolicy changes the restart policy of a container.
func (e *Engine) SetRestartPolicy(ctx context.Context, id string, policy container.RestartPolicy) error {
	_, err := e.ContainerUpdate(ctx, id, container.UpdateConfig{RestartPolicy: policy})
	if err != nil {
		return fmt.Errorf("set restart policy of container %s: %w", id[:ShortID], err)
	}
	return nil
}

// StartAgain starts a container that ran before. After a crash an engine may fail with "already
// exists", because something of the earlier run is left. It clears that away, so StartAgain tries
// until 20 seconds.
func (e *Engine) StartAgain(ctx context.Context, id string) error {
	ctx, cancel := Cleanup(ctx)
	defer cancel()
	return Poll(ctx, func() (bool, error) {
		err := e.ContainerStart(ctx, id, container.StartOptions{})
		if err != nil && strings.Contains(err.Error(), "already exists") {
			return false, nil
		}
		return err == nil, err
	})
}
