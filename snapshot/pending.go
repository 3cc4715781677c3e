package snapshot

import (
	"context"
	"errors"
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

// worker is a container of ours that works on volumes, or did.
type worker struct {
	container.Summary
	alive bool // at work, about to be, or about to be gone
}

// workers lists the workers with one of our labels, dead ones too, the oldest first: an
// operation that lost its lock and could not have it again may have left two, and the
// older one has the journal that is recorded.
func (e *Engine) workers(ctx context.Context, label string) ([]worker, error) {
	if e.volumes == nil {
		return nil, nil
	}
	list, err := e.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	now := sync.OnceValues(func() (time.Time, error) { return e.docker.Time(ctx) })
	var found []worker
	for _, c := range list {
		is, err := e.isWorker(ctx, c)
		if err != nil {
			return nil, err
		}
		if !is {
			continue
		}
		var at time.Time
		if c.State == container.StateCreated { // only then its age matters
			if at, err = now(); err != nil {
				return nil, err
			}
		}
		found = append(found, worker{c, volumebackup.IsAlive(c.State, time.Unix(c.Created, 0), at)})
	}
	slices.Reverse(found) // engines list the newest first
	return found, nil
}

// isWorker tells our workers from containers that only look like one.
func (e *Engine) isWorker(ctx context.Context, c container.Summary) (bool, error) {
	if e.volumes == nil {
		return false, nil
	}
	return e.volumes.IsWorker(ctx, c)
}

// withoutWorkers leaves out our own workers, which come and go.
func (e *Engine) withoutWorkers(ctx context.Context, containers []container.Summary) ([]container.Summary, error) {
	var others []container.Summary
	for _, c := range containers {
		is, err := e.isWorker(ctx, c)
		if err != nil {
			return nil, err
		}
		if !is {
			others = append(others, c)
		}
	}
	return others, nil
}

// replacing is a restore in place that is under way, or was interrupted.
type replacing struct {
	worker  worker
	journal journal
}

// isLeftover tells whether the operation is over, done or rolled back, and nobody works
// on it any more. All that may be left to do is to start others, and to remove the old
// container: nobody needs to wait for that.
func (r replacing) isLeftover() bool {
	return volumebackup.IsSettled(dockerop.SummaryName(r.worker.Summary)) && !r.worker.alive
}

// concern is what an operation is about.
type concern struct {
	words   []string // names and IDs of its container
	volumes []string // that it reads or writes
}

// of is what an operation on a container is about.
func (c concern) of(found container.InspectResponse) concern {
	c.words = append(slices.Clone(c.words), found.ID, dockerop.ContainerName(found))
	return c
}

// pendingReplacements finds those that are about the same container, or write the
// same volumes.
func (e *Engine) pendingReplacements(ctx context.Context, about concern, p plan.Progress) ([]replacing, error) {
	workers, err := e.workers(ctx, labelJournal)
	if err != nil {
		return nil, err
	}
	return about.choose(workers, p)
}

// choose finds the restores in place that workers stand for and that are about the
// same. One that cannot be read stands in nobody's way but its own container's.
func (c concern) choose(workers []worker, p plan.Progress) ([]replacing, error) {
	var pending []replacing
	for _, w := range workers {
		if _, ok := w.Labels[labelJournal]; !ok {
			continue
		}
		j, err := journalOf(w)
		switch {
		case err != nil && c.locks(w):
			return nil, err
		case err != nil:
			p.Warn("check", fmt.Sprintf("worker %s is left alone: %v", dockerop.SummaryName(w.Summary), err))
		case j.isAbout(c.words) || j.isOn(c.volumes):
			pending = append(pending, replacing{w, j})
		}
	}
	return pending, nil
}

// locks tells by the name of a worker whether it locks, or has locked, the
// container.
func (c concern) locks(w worker) bool {
	return slices.ContainsFunc(c.words, func(word string) bool {
		return word != "" && (volumebackup.IsLockOf(dockerop.SummaryName(w.Summary), word) || volumebackup.IsLockOf(dockerop.SummaryName(w.Summary), journal{Name: word}.lock()))
	})
}

// isServedBy tells whether a worker works for one of the containers.
func (c concern) isServedBy(w worker) bool {
	if slices.Contains(c.words, "") || c.locks(w) { // "": whichever
		return true
	}
	if _, isReplace := w.Labels[labelJournal]; isReplace {
		j, err := journalOf(w)
		return err == nil && j.isAbout(c.words)
	}
	frozen, err := volumebackup.FrozenBy(w.Labels)
	return err == nil && slices.ContainsFunc(frozen, func(id string) bool { return slices.Contains(c.words, id) })
}

// errMoved means that another operation has changed the container meanwhile, or is
// about to, so that everything has to be looked at again.
var errMoved = errors.New("the container was changed by another operation")

// holdsNothing tells whether there is nothing to put right after a dead worker: it has no
// journal, and nothing was frozen for it.
func holdsNothing(w worker) bool {
	_, replaces := w.Labels[labelJournal]
	_, makes := w.Labels[labelMade]
	frozen, err := volumebackup.FrozenBy(w.Labels)
	return !replaces && (!makes || volumebackup.IsSettled(dockerop.SummaryName(w.Summary))) && err == nil && len(frozen) == 0
}

// clearDead removes dead workers that hold nothing. That it cannot keeps nobody from
// anything.
func (e *Engine) clearDead(ctx context.Context, workers []worker, p plan.Progress) {
	for _, w := range workers {
		if w.alive || !holdsNothing(w) {
			continue
		}
		if err := e.docker.Discard(ctx, w.ID); err != nil && ctx.Err() == nil {
			p.Warn("check", fmt.Sprintf("worker %s, which is dead, is not removed: %v", dockerop.SummaryName(w.Summary), err))
		}
	}
}

// otherWorkers lists the workers, dead ones too, but those with these names.
func (e *Engine) otherWorkers(ctx context.Context, own []string) ([]worker, error) {
	workers, err := e.workers(ctx, volumebackup.LabelPurpose)
	return slices.DeleteFunc(workers, func(w worker) bool { return slices.Contains(own, dockerop.SummaryName(w.Summary)) }), err
}

// chooseRivals finds the restores in place that have to be waited for.
func (c concern) chooseRivals(workers []worker, p plan.Progress) ([]replacing, error) {
	rivals, err := c.choose(workers, p)
	return slices.DeleteFunc(rivals, replacing.isLeftover), err
}

// findRivals looks again once the lock is held, by workers with these names: for
// restores in place about the same that were begun, or interrupted, while it was
// waited for, and for who reads the volumes. Whoever is not found
// now will find this operation's workers.
func (e *Engine) findRivals(ctx context.Context, own []string, about concern, p plan.Progress) (rivals []replacing, readers []worker, err error) {
	workers, err := e.otherWorkers(ctx, own)
	if err != nil {
		return nil, nil, err
	}
	if rivals, err = about.chooseRivals(workers, p); err != nil {
		return nil, nil, err
	}
	for _, w := range workers {
		_, isJournal := w.Labels[labelJournal]
		// The worker that writes for a restore in place does not count: it does nothing
		// while there is no journal beside it, and may itself wait for this lock.
		reads := slices.ContainsFunc(w.Mounts, func(m container.MountPoint) bool { return !m.RW && slices.Contains(about.volumes, m.Name) })
		if w.alive && !isJournal && reads {
			readers = append(readers, w)
		}
	}
	return rivals, readers, nil
}

// checkUnmoved checks, once a container's lock is held, that it is still what it was,
// and that no restore in place has to do with it or its volumes. It returns the other
// workers.
func (e *Engine) checkUnmoved(ctx context.Context, c container.InspectResponse, volumes []string, p plan.Progress) ([]worker, error) {
	workers, err := e.otherWorkers(ctx, []string{volumebackup.LockName(c.ID)})
	if err != nil {
		return nil, err
	}
	rivals, err := concern{volumes: volumes}.of(c).chooseRivals(workers, p)
	if err != nil {
		return nil, err
	}
	found, err := e.docker.InspectIfThere(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if len(rivals) > 0 || found == nil || !sameContainer(*found, c) || c.State.Paused && !found.State.Paused {
		return nil, errMoved
	}
	return workers, nil
}

// await waits for a worker that is at work on the same.
func (e *Engine) await(ctx context.Context, w worker, name string, p plan.Progress) error {
	p.Status("check", "waiting for another operation on container "+name)
	return e.volumes.Await(ctx, w.ID)
}

// conclude waits for what is under way, and takes back what was interrupted.
func (e *Engine) conclude(ctx context.Context, pending []replacing, p plan.Progress) error {
	for _, r := range pending {
		if r.worker.alive {
			if err := e.await(ctx, r.worker, r.journal.Name, p); err != nil {
				return err
			}
			continue
		}
		done, err := e.recoverReplace(ctx, r, p)
		if err != nil {
			return err
		}
		if done != nil {
			p.Warn("recover", done.Container+": "+done.Text)
		}
	}
	return nil
}

// leftovers are the settled operations of which a command has tried to do what was
// left, by the IDs of their workers. Once is enough: if it fails, that does not keep
// the command from its work.
type leftovers map[string]bool

// untried are the pending operations without those leftovers.
func (l leftovers) untried(pending []replacing) []replacing {
	return slices.DeleteFunc(pending, func(r replacing) bool { return l[r.worker.ID] })
}

// conclude is [Engine.conclude], to which a leftover that cannot be cleared away is only
// worth a warning.
func (l leftovers) conclude(ctx context.Context, e *Engine, pending []replacing, p plan.Progress) error {
	for _, r := range pending {
		err := e.conclude(ctx, []replacing{r}, p)
		if r.isLeftover() && err != nil && ctx.Err() == nil {
			l[r.worker.ID] = true
			p.Warn("recover", err.Error())
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameContainer tells whether a container is still what it was: one that was
// renamed has been set aside.
func sameContainer(now, before container.InspectResponse) bool {
	return now.ID == before.ID && dockerop.ContainerName(now) == dockerop.ContainerName(before)
}
