package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// takeOver frees a lock whose worker is dead: it thaws what is frozen, and removes the worker or sets it aside. If the
// worker is alive, it returns what the worker is doing.
func (l *containerLauncher) takeOver(ctx context.Context, name string) (*LockedError, error) {
	holder, err := l.docker.ContainerInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect worker %s: %w", name, err)
	}
	is, err := l.images.isWorker(ctx, container.Summary{Names: []string{holder.Name}, ImageID: holder.Image, Labels: holder.Config.Labels})
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, fmt.Errorf("container %s, which is none of ours, has the name that locks the container: rename or remove it", name)
	}
	alive, err := isAlive(ctx, l.docker, holder)
	if err != nil {
		return nil, err
	}
	if alive {
		return lockedBy(holder), nil
	}
	frozen, err := FrozenBy(holder.Config.Labels)
	if err != nil {
		return nil, err
	}
	if err := l.thaw(ctx, frozen); err != nil {
		return nil, fmt.Errorf("clear up after an interrupted operation: %w", err)
	}
	if holder.Config.Labels[labelKept] != "" {
		return nil, l.setAside(ctx, holder)
	}
	if err := removeWorker(ctx, l.docker, holder.ID); err != nil {
		return nil, fmt.Errorf("clear up after an interrupted operation: %w", err)
	}
	return nil, nil
}

// setAside frees the lock of a dead worker whose journal says more than this package understands. Whoever recovers the
// operation finds the worker by its labels. Several processes may try at once: all give it the same name, and it is
// enough if one succeeds.
func (l *containerLauncher) setAside(ctx context.Context, holder container.InspectResponse) error {
	const shown = 6
	err := l.docker.ContainerRename(ctx, holder.ID, strings.TrimPrefix(holder.Name, "/")+"-"+holder.ID[:shown])
	if err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) && !cerrdefs.IsInvalidArgument(err) {
		return fmt.Errorf("set an interrupted operation aside: %w", err)
	}
	return nil
}

// thaw thaws those containers that are paused.
func (l *containerLauncher) thaw(ctx context.Context, frozen []string) error {
	var failed error
	for _, id := range frozen {
		c, err := l.docker.ContainerInspect(ctx, id)
		switch {
		case cerrdefs.IsNotFound(err):
		case err != nil:
			failed = errors.Join(failed, err)
		case c.State.Paused:
			failed = errors.Join(failed, l.unpause(ctx, id))
		}
	}
	return failed
}

// unpause thaws a container. It is no error if somebody else has thawed or removed it meanwhile.
func (l *containerLauncher) unpause(ctx context.Context, id string) error {
	failed := l.docker.ContainerUnpause(ctx, id)
	if failed == nil {
		return nil
	}
	c, err := l.docker.ContainerInspect(ctx, id)
	if cerrdefs.IsNotFound(err) || err == nil && !c.State.Paused {
		return nil
	}
	return failed
}
