package pending

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Worker is a container of ours that works on volumes, or did.
type Worker struct {
	container.Summary
	Alive bool // running, about to start, or about to be removed
}

// IsOver tells whether the operation of a worker is over: done, or rolled back.
func (w Worker) IsOver() bool { return volumebackup.IsSettled(w.ID, dockerop.SummaryName(w.Summary)) }

// Workers returns the workers with one of our labels, live and dead, the oldest first. The order
// matters: an operation that lost its lock and could not take it again may have left two workers,
// and the older one has the journal.
func (f *Finder) Workers(ctx context.Context, label string) ([]Worker, error) {
	list, err := f.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	now := sync.OnceValues(func() (time.Time, error) { return f.docker.Time(ctx) })
	var found []Worker
	for _, c := range list {
		is, err := f.isWorker(ctx, c)
		if err != nil {
			return nil, err
		}
		if !is {
			continue
		}
		var at time.Time
		if c.State == container.StateCreated { // only then does IsAlive need its age
			if at, err = now(); err != nil {
				return nil, err
			}
		}
		found = append(found, Worker{c, volumebackup.IsAlive(c.State, time.Unix(c.Created, 0), at)})
	}
	slices.Reverse(found) // engines list the newest first
	return found, nil
}

// isWorker tells our workers from containers that only bear their labels.
func (f *Finder) isWorker(ctx context.Context, c container.Summary) (bool, error) {
	return f.volumes.IsWorker(ctx, c)
}

// WithoutWorkers returns the containers that are not our workers.
func (f *Finder) WithoutWorkers(ctx context.Context, containers []container.Summary) ([]container.Summary, error) {
	var others []container.Summary
	for _, c := range containers {
		is, err := f.isWorker(ctx, c)
		if err != nil {
			return nil, err
		}
		if !is {
			others = append(others, c)
		}
	}
	return others, nil
}

// HoldsNothing tells whether a dead worker left nothing to put right: it has no journal, and has
// frozen nothing.
func HoldsNothing(w Worker) bool {
	_, replaces := w.Labels[LabelJournal]
	_, makes := w.Labels[LabelMade]
	frozen, err := volumebackup.FrozenBy(w.Labels)
	return !replaces && (!makes || w.IsOver()) && err == nil && len(frozen) == 0
}

// ClearDead removes the dead workers that left nothing to put right. A failure is a warning,
// because they are in nobody's way.
func (f *Finder) ClearDead(ctx context.Context, workers []Worker, p plan.Progress) {
	for _, w := range workers {
		if w.Alive || !HoldsNothing(w) {
			continue
		}
		if err := f.docker.Discard(ctx, w.ID); err != nil && ctx.Err() == nil {
			p.Warn("check", fmt.Sprintf("dead worker %s could not be removed: %v", dockerop.SummaryName(w.Summary), err))
		}
	}
}

// otherWorkers returns the workers, live and dead, but for those with the names own.
func (f *Finder) otherWorkers(ctx context.Context, own []string) ([]Worker, error) {
	workers, err := f.Workers(ctx, volumebackup.LabelPurpose)
	return slices.DeleteFunc(workers, func(w Worker) bool { return slices.Contains(own, dockerop.SummaryName(w.Summary)) }), err
}

// SplitWorkers separates our workers from other containers. It returns the others, and the IDs of
// the containers that workers freeze or will freeze: if one of these is paused, that is for a
// moment, and not by its user.
func (f *Finder) SplitWorkers(ctx context.Context, containers []container.Summary) (others []container.Summary, held []string, err error) {
	for _, c := range containers {
		is, err := f.isWorker(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		if !is {
			others = append(others, c)
			continue
		}
		if frozen, err := volumebackup.FrozenBy(c.Labels); err == nil {
			held = append(held, frozen...)
		}
	}
	return others, held, nil
}

// Clear thaws what a dead worker has left frozen, and removes the worker.
func (f *Finder) Clear(ctx context.Context, w Worker) error {
	frozen, err := volumebackup.FrozenBy(w.Labels)
	if err != nil {
		return err
	}
	if _, err := f.docker.Thaw(ctx, frozen); err != nil {
		return err
	}
	return dockerop.Describe(f.docker.RemoveContainer(ctx, w.ID), "remove worker "+dockerop.SummaryName(w.Summary))
}
