package copies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// goneOnFor is the longest time that copies of an interrupted fork may have run since then to be
// removed: whoever has found them would lose what is in them.
const goneOnFor = 2 * time.Minute

// removeTogether removes the copies of a fork that was interrupted, also those that run already. If
// that is long ago, those that run stay.
func (cp *Copier) removeTogether(ctx context.Context, worker, operation string) error {
	interrupted, err := cp.endOf(ctx, worker)
	if err != nil {
		return err
	}
	now, err := cp.docker.Time(ctx)
	if err != nil {
		return err
	}
	all, err := cp.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return fmt.Errorf("list copies: %w", err)
	}
	for _, c := range all {
		isOwn, ownErr := cp.isMadeBy(ctx, c, operation)
		runs := c.State == container.StateRunning || c.State == container.StatePaused || c.State == container.StateRestarting
		if err = errors.Join(err, ownErr); !isOwn || runs && now.Sub(interrupted) > goneOnFor {
			continue
		}
		if removeErr := cp.docker.RemoveContainer(ctx, c.ID); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("remove container %s: %w", dockerop.SummaryName(c), removeErr))
		}
	}
	return err
}

// endOf returns when a dead worker has ended.
func (cp *Copier) endOf(ctx context.Context, worker string) (time.Time, error) {
	dead, err := cp.docker.InspectIfThere(ctx, worker)
	if err != nil || dead == nil {
		return time.Time{}, err
	}
	ended := dockerop.TimeOf(dead.State.FinishedAt)
	if ended.IsZero() { // it never ran, or the engine does not know when it ended
		ended = dockerop.TimeOf(dead.Created)
	}
	return ended, nil
}

// isMadeBy tells whether an operation has made a container.
func (cp *Copier) isMadeBy(ctx context.Context, c container.Summary, operation string) (bool, error) {
	for _, key := range []string{labels.KeyOperation, labels.KeyFilledBy} {
		if c.Labels[key] == operation {
			return cp.isLabelledItself(ctx, c, key)
		}
	}
	return false, nil
}
