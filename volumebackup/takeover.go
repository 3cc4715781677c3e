package volumebackup

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// takeOver frees a lock whose worker is dead: it thaws what is frozen, and removes the worker or sets it aside. If the
// worker is alive, it returns what the worker is doing.
func (l *containerLauncher) takeOver(ctx context.Context, name string) (*LockedError, error) {
	holder, _, err := l.docker.ContainerInspectWithRaw(ctx, name, false)
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
	if _, err := dockerop.Thaw(ctx, l.docker, l.freezer, frozen); err != nil {
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
