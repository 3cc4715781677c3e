package dockerop

import (
	"context"
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
)

type NetworkingConfig = network.NetworkingConfig

// InspectIfThere inspects the container of exactly that name or ID, and returns
// nil if there is none. The engine would also take the beginning of an ID: for a
// container named db that is gone, any whose ID begins so.
func (e *Engine) InspectIfThere(ctx context.Context, word string) (*container.InspectResponse, error) {
	if word == "" {
		return nil, nil
	}
	found, _, err := e.ContainerInspectWithRaw(ctx, word, false)
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect container %s: %w", word, err)
	}
	if found.ID != word && ContainerName(found) != word {
		return nil, nil
	}
	return &found, nil
}

// CreateContainer makes a container. The call is not cancelled midway: the
// engine would go on, and nobody would know the new container's ID.
func (e *Engine) CreateContainer(ctx context.Context, config *container.Config, host *container.HostConfig, networking *NetworkingConfig, name string) (container.CreateResponse, error) {
	if err := ctx.Err(); err != nil {
		return container.CreateResponse{}, context.Cause(ctx)
	}
	created, err := e.ContainerCreate(context.WithoutCancel(ctx), config, host, networking, nil, name)
	if err == nil && ctx.Err() == nil {
		return created, nil
	}
	after, cancel := Cleanup(ctx)
	defer cancel()
	if err != nil {
		return container.CreateResponse{}, errors.Join(err, insist(after, func(ctx context.Context) error { return e.removeUnanswered(ctx, err, config, name) }, nil))
	}
	return container.CreateResponse{}, errors.Join(context.Cause(ctx), e.RemoveContainer(after, created.ID))
}

// removeUnanswered removes what a create call has made although it failed: the
// connection may break before the answer comes. What says that it is ours are
// our labels, on a container of that name that has never run.
func (e *Engine) removeUnanswered(ctx context.Context, failure error, config *container.Config, name string) error {
	if cerrdefs.IsConflict(failure) || cerrdefs.IsNotFound(failure) || cerrdefs.IsInvalidArgument(failure) {
		return nil // an answer
	}
	found, err := e.InspectIfThere(ctx, name)
	if err != nil || found == nil || found.State.Status != "created" {
		return err
	}
	for key, value := range config.Labels {
		if found.Config.Labels[key] != value {
			return nil
		}
	}
	return e.RemoveContainer(ctx, found.ID)
}

// RemoveContainer removes a container by force, and its volumes without a name.
// That it is gone, or about to go, is as good: the engine itself removes one that
// was made with --rm, when it ends and when it cannot be started.
func (e *Engine) RemoveContainer(ctx context.Context, id string) error {
	err := e.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsConflict(err) { // it is being removed
		return e.AwaitGone(ctx, id)
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Discard removes the container that word names, if it is not empty.
func (e *Engine) Discard(ctx context.Context, word string) error {
	if word == "" {
		return nil
	}
	return e.RemoveContainer(ctx, word)
}

// AwaitGone waits until the engine has removed a container that was made with --rm.
func (e *Engine) AwaitGone(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, CleanupTimeout)
	defer cancel()
	return Poll(ctx, func() (bool, error) {
		_, _, err := e.ContainerInspectWithRaw(ctx, id, false)
		if cerrdefs.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
