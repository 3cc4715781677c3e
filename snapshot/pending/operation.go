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

// IsLeftover tells whether the operation is over, done or rolled back, and its worker dead. What is
// left to do at most is to start others and to remove the old container; nobody needs to wait for
// that.
func (r Operation) IsLeftover() bool {
	return r.Worker.IsOver() && !r.Worker.Alive
}

// Replacements finds the restores in place of the same container, and those that write the same
// volumes.
func (f *Finder) Replacements(ctx context.Context, about Scope, p plan.Progress) ([]Operation, error) {
	workers, err := f.Workers(ctx, LabelJournal)
	if err != nil {
		return nil, err
	}
	return about.Choose(workers, p)
}

// ErrMoved says that another operation has changed the container, or is about to, so that the
// caller has to observe everything again.
var ErrMoved = errors.New("the container was changed by another operation")

// Rivals looks again once the caller holds its lock; own are the names of its workers. It returns
// the restores in place in the same scope that began, or were interrupted, while the caller waited
// for the lock, and the live workers that read the volumes. Operations that it does not find will
// find the caller's workers.
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
		// A worker that mounts a volume read-write belongs to a restore in place. It does not count:
		// without a journal it does nothing yet, and it may itself be waiting for this lock.
		reads := slices.ContainsFunc(w.Mounts, func(m container.MountPoint) bool { return !m.RW && isAmong(dockerop.MountKey(m), about.Volumes) })
		if w.Alive && !isJournal && reads {
			readers = append(readers, w)
		}
	}
	return rivals, readers, nil
}

// CheckUnmoved checks, once the caller holds the locks of some containers, that they are still as
// they were observed, and that no restore in place concerns them or their volumes; otherwise it
// returns [ErrMoved]. It returns the other workers.
func (f *Finder) CheckUnmoved(ctx context.Context, containers []container.InspectResponse, volumes []string, p plan.Progress) ([]Worker, error) {
	about := Scope{Volumes: volumes}
	var own []string
	for _, c := range containers {
		about, own = about.Of(c), append(own, volumebackup.LockName(c.ID))
	}
	workers, err := f.otherWorkers(ctx, own)
	if err != nil {
		return nil, err
	}
	rivals, err := about.chooseRivals(workers, p)
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		found, err := f.docker.InspectIfThere(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		if len(rivals) > 0 || found == nil || !SameContainer(*found, c) || c.State.Paused && !found.State.Paused {
			return nil, ErrMoved
		}
	}
	return workers, nil
}

// Await waits until a worker has finished that works on container name.
func (f *Finder) Await(ctx context.Context, w Worker, name string, p plan.Progress) error {
	p.Status("check", "waiting for another operation on container "+name)
	return f.volumes.Await(ctx, w.ID)
}

// SameContainer tells whether a container is still the one that was observed. If it was renamed, a
// restore in place may have put it aside.
func SameContainer(now, before container.InspectResponse) bool {
	return now.ID == before.ID && dockerop.ContainerName(now) == dockerop.ContainerName(before)
}
