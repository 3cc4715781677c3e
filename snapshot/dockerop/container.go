package dockerop

import (
	"context"
	"errors"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// InspectIfThere inspects the container whose name or ID is exactly word. It returns nil if there
// is none. The engine itself would also take the beginning of an ID: asked for a container named db
// that is gone, it may answer with any whose ID begins with db.
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

// CreateContainer makes a container. The call itself is never cancelled: the engine would go on,
// and nobody would know the new container's ID. If ctx has ended by the time the engine answers,
// the container is removed.
func (e *Engine) CreateContainer(ctx context.Context, config *container.Config, host *container.HostConfig, networking *network.NetworkingConfig, name string) (container.CreateResponse, error) {
	if err := ctx.Err(); err != nil {
		return container.CreateResponse{}, context.Cause(ctx)
	}
	created, err := e.ContainerCreate(context.WithoutCancel(ctx), config, host, networking, nil, name)
	err = AsFull(err)
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

// removeUnanswered removes the container of a create call that succeeded although it failed for us:
// the connection may break before the answer comes. It removes a container only if it has the name
// and all the labels that were asked for, and has never run.
func (e *Engine) removeUnanswered(ctx context.Context, failure error, config *container.Config, name string) error {
	if cerrdefs.IsConflict(failure) || cerrdefs.IsNotFound(failure) || cerrdefs.IsInvalidArgument(failure) {
		return nil // the engine has answered: it made nothing
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

// RemoveContainer removes a container by force, together with its anonymous volumes. It succeeds if
// the container is gone, and waits if the engine is removing it already: an engine removes a
// container made with --rm when it ends, and when it cannot be started.
func (e *Engine) RemoveContainer(ctx context.Context, id string) error {
	err := e.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsConflict(err) { // somebody is removing it
		return e.AwaitGone(ctx, id)
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Discard removes the container that word names. It does nothing if word is empty.
func (e *Engine) Discard(ctx context.Context, word string) error {
	if word == "" {
		return nil
	}
	return e.RemoveContainer(ctx, word)
}

// AwaitGone waits until a container is gone that the engine is removing. It fails after
// 20 seconds.
func (e *Engine) AwaitGone(ctx context.Context, id string) error {
	return AwaitGone(ctx, e.Docker, id)
}

// Inspector is the part of the Engine API that [AwaitGone] calls.
type Inspector interface {
	ContainerInspectWithRaw(ctx context.Context, id string, size bool) (container.InspectResponse, []byte, error)
}

// removalPoll is the time between two looks of AwaitGone. A removal that is under way takes a few
// milliseconds.
const removalPoll = 10 * time.Millisecond

// AwaitGone does what [Engine.AwaitGone] does, for callers without an [Engine].
func AwaitGone(ctx context.Context, docker Inspector, id string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	return pollEvery(ctx, removalPoll, func() (bool, error) {
		_, _, err := docker.ContainerInspectWithRaw(ctx, id, false)
		if cerrdefs.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// ContainerState maps an engine's state to ours. A container that is restarting counts as running.
func ContainerState(s *container.State) labels.State {
	switch {
	case s.Paused:
		return labels.StatePaused
	case s.Running || s.Restarting:
		return labels.StateRunning
	case s.Status == "created":
		return labels.StateCreated
	}
	return labels.StateExited
}

// ContainerHealth maps the result of a healthcheck to ours. A container without a healthcheck has none. An engine calls a container
// unhealthy that was paused, until the next probe; no probe has failed then.
func ContainerHealth(s *container.State) labels.Health {
	switch h := s.Health; {
	case h == nil || h.Status == container.NoHealthcheck:
		return ""
	case h.Status == container.Unhealthy && h.FailingStreak == 0:
		return labels.HealthStarting
	default:
		return labels.Health(h.Status)
	}
}
