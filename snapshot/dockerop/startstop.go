package dockerop

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// policyPatience is how long an engine may refuse a new restart policy because a container is ending.
const policyPatience = 10 * time.Second

// SetRestartPolicy changes the restart policy of a container. Engines refuse that in the moment in which the container
// ends, each in its own words, so it is tried again for a while.
func (e *Engine) SetRestartPolicy(ctx context.Context, id string, policy container.RestartPolicy) error {
	err := retry(ctx, policyPatience, isEnding, func(context.Context) error {
		_, err := e.ContainerUpdate(ctx, id, container.UpdateConfig{RestartPolicy: policy})
		return err
	})
	if err != nil {
		return fmt.Errorf("set restart policy of container %s: %w", id[:ShortID], err)
	}
	return nil
}

func isEnding(err error) bool {
	text := err.Error()
	return strings.Contains(text, "cannot update a stopped container") || strings.Contains(text, "container not running")
}

// Start starts a container. It returns a [StaleTaskError] if the engine keeps a process of an earlier run.
func (e *Engine) Start(ctx context.Context, id string) error {
	return asStaleTask(e.ContainerStart(ctx, id, container.StartOptions{}), id)
}

// StartAgain starts a container that ran before. After a crash an engine may fail with "already
// exists", because something of the earlier run is left. Most often it clears that away, so StartAgain
// tries until 20 seconds, and then returns what the engine said last.
func (e *Engine) StartAgain(ctx context.Context, id string) error {
	return retry(context.WithoutCancel(ctx), cleanupTimeout, isLeft, func(ctx context.Context) error { return e.Start(ctx, id) })
}

func isLeft(err error) bool {
	return strings.Contains(err.Error(), "already exists") || isStaleTask(err)
}
