package dockerop

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// Stop ends a container. One that is gone is as good, one that stands still is
// thawed first: a frozen process cannot answer its stop signal.
func (e *Engine) Stop(ctx context.Context, id string, paused bool, timeout *int) error {
	if paused {
		if _, err := e.unpause(ctx, id); err != nil {
			return err
		}
	}
	err := e.ContainerStop(ctx, id, container.StopOptions{Timeout: timeout})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

func (e *Engine) SetRestartPolicy(ctx context.Context, id string, policy container.RestartPolicy) error {
	_, err := e.ContainerUpdate(ctx, id, container.UpdateConfig{RestartPolicy: policy})
	if err != nil {
		return fmt.Errorf("set restart policy of container %s: %w", id[:ShortID], err)
	}
	return nil
}

// StartAgain starts a container that ran before. After a crash an engine may find
// in its way what is left of that, which it then clears away.
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
