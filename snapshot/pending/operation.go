package pending

import (
	"context"
	"errors"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Operation is a restore in place that is under way, or was interrupted.
type Operation struct {
	Worker  Worker
	Journal Journal
}

// IsLeftover tells whether the operation is over, done or rolled back, and nobody works
// on it any more. All that may be left to do is to start others, and to remove the old
// container: nobody needs to wait for that.
func (r Operation) IsLeftover() bool {
	return volumebackup.IsSettled(dockerop.SummaryName(r.Worker.Summary)) && !r.Worker.Alive
}

// Replacements finds those that are about the same container, or write the
// same volumes.
func (f *Finder) Replacements(ctx context.Context, about Scope, p plan.Progress) ([]Operation, error) {
	workers, err := f.Workers(ctx, LabelJournal)
	if err != nil {
		return nil, err
	}
	return about.Choose(workers, p)
}

// ErrMoved means that another operation has changed the container meanwhile, or is
// about to, so that everything has to be looked at again.
var ErrMoved = errors.New("the container was changed by another operation")

// Rivals looks again once the lock is held, by workers with these names: for
// restores in place about the same that were begun, or interrupted, while it was
// waited for, and for who reads the volumes. Whoever is not found
// now will find this operation's workers.
func (f *Finder) Rivals(ctx context.Context, own []string, about Scope, p plan.Progress) (rivals []Operation, readers []Worker, err error) {
	workers, err := f.otherWorkers(ctx, own)
	if err != nil {
		return nil, nil, err
	}
	if rivals, err = about.chooseRivals(workers, p); err != nil {
		return nil, nil, err
	}
	for _, w := range workers {
		_, isJournal := w.Labels[LabelJournal]
		// The worker that writes for a restore in place does not count: it does nothing
		// while there is no journal beside it, and may itself wait for this lock.
		reads := slices.ContainsFunc(w.Mounts, func(m container.MountPoint) bool { return !m.RW && slices.Contains(about.Volumes, m.Name) })
		if w.Alive && !isJournal && reads {
			readers = append(readers, w)
		}
	}
	return rivals, readers, nil
}

// CheckUnmoved checks, once a container's lock is held, that it is still what it was,
// and that no restore in place has to do with it or its volumes. It returns the other
// workers.
func (f *Finder) CheckUnmoved(ctx context.Context, c container.InspectResponse, volumes []string, p plan.Progress) ([]Worker, error) {
	workers, err := f.otherWorkers(ctx, []string{volumebackup.LockName(c.ID)})
	if err != nil {
		return nil, err
	}
	rivals, err := Scope{Volumes: volumes}.Of(c).chooseRivals(workers, p)
	if err != nil {
		return nil, err
	}
	found, err := f.docker.InspectIfThere(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if len(rivals) > 0 || found == nil || !SameContainer(*found, c) || c.State.Paused && !found.State.Paused {
		return nil, ErrMoved
	}
	return workers, nil
}

// Await waits for a worker that is at work on the same.
func (f *Finder) Await(ctx context.Context, w Worker, name string, p plan.Progress) error {
	p.Status("check", "waiting for another operation on container "+name)
	return f.volumes.Await(ctx, w.ID)
}

// SameContainer tells whether a container is still what it was: one that was
// renamed has been set aside.
func SameContainer(now, before container.InspectResponse) bool {
	return now.ID == before.ID && dockerop.ContainerName(now) == dockerop.ContainerName(before)
}
