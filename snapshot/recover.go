package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Recover recovers the interrupted operations of one container, or of all if name is empty. It
// leaves alone those that are under way. If nothing failed, it sweeps the store of new snapshots
// or, for all containers, every store.
func (e *Engine) Recover(ctx context.Context, name string, p plan.Progress) ([]replace.Recovery, error) {
	about := pending.Scope{Words: []string{name}}
	if c, err := e.docker.InspectIfThere(ctx, name); err != nil {
		return nil, err
	} else if c != nil {
		about = about.Of(*c)
	}
	workers, err := e.restingWorkers(ctx, about, p)
	if err != nil {
		return nil, err
	}
	var done []replace.Recovery
	var failed error
	if name == "" {
		done, failed = e.recoverUnfinished(ctx, workers)
	}
	for _, w := range emptyHandedFirst(workers) {
		if w.Alive {
			continue
		}
		r, err := e.recoverWorker(ctx, w, about, p)
		failed = errors.Join(failed, err)
		if r != nil {
			done = append(done, *r)
		}
	}
	if name == "" { // when no worker mounts their volumes any more
		drills, err := e.copies.RemoveDrills(ctx)
		failed = errors.Join(failed, err)
		for _, name := range drills {
			done = append(done, replace.Recovery{Container: name, Text: "a copy of an interrupted drill was removed"})
		}
	}
	switch {
	case failed != nil:
	case name == "":
		e.removal.SweepStores(ctx, p)
	default:
		e.removal.Sweep(ctx, p)
	}
	return done, failed
}

// emptyHandedFirst sorts workers: those that left nothing to put right come first. Nobody can remove a
// volume that another one has made for as long as they mount it.
func emptyHandedFirst(workers []pending.Worker) []pending.Worker {
	holding := slices.DeleteFunc(slices.Clone(workers), pending.HoldsNothing)
	empty := slices.DeleteFunc(slices.Clone(workers), func(w pending.Worker) bool { return !pending.HoldsNothing(w) })
	return append(empty, holding...)
}

// endingPatience is how long a worker may take to end after its client was killed: it has to
// notice, and so has the engine.
const endingPatience = 3 * time.Second

// restingWorkers lists the workers. A worker of these containers may be about to end, so it is
// waited for, but not for long: it may as well be at work.
func (e *Engine) restingWorkers(ctx context.Context, about pending.Scope, p plan.Progress) (workers []pending.Worker, err error) {
	deadline := e.now().Add(endingPatience)
	err = dockerop.Poll(ctx, func() (bool, error) {
		workers, err = e.pending.Workers(ctx, volumebackup.LabelPurpose)
		at := slices.IndexFunc(workers, func(w pending.Worker) bool { return w.Alive && about.IsServedBy(w) })
		if err != nil || at < 0 || e.now().After(deadline) {
			return true, err
		}
		p.Status("check", "checking whether this operation is still running: "+workers[at].Labels[volumebackup.LabelPurpose])
		return false, nil
	})
	return workers, err
}

// thawInterrupted thaws what dead workers left frozen, and removes the workers.
func (e *Engine) thawInterrupted(ctx context.Context, dead []pending.Worker) error {
	var failed error
	for _, w := range dead {
		_, err := e.copies.Clear(ctx, w)
		failed = errors.Join(failed, err)
	}
	return failed
}

// recoverUnfinished removes copies that were never finished and of whose restore there is no worker.
func (e *Engine) recoverUnfinished(ctx context.Context, workers []pending.Worker) ([]replace.Recovery, error) {
	removed, err := e.copies.RemoveAbandoned(ctx, workers)
	var done []replace.Recovery
	for _, name := range removed {
		done = append(done, replace.Recovery{Container: name, Text: "a copy whose restore was interrupted was removed"})
	}
	return done, err
}

// recoverWorker recovers the operation of a dead worker. It returns nil if that concerns another
// container.
func (e *Engine) recoverWorker(ctx context.Context, w pending.Worker, about pending.Scope, p plan.Progress) (*replace.Recovery, error) {
	if _, isReplace := w.Labels[pending.LabelJournal]; !isReplace {
		return e.recoverFrozen(ctx, w, about)
	}
	j, err := pending.JournalOf(w)
	if err != nil && (about.Words[0] == "" || about.Locks(w)) {
		return nil, err
	}
	if err != nil || about.Words[0] != "" && !j.IsAbout(about.Words) {
		return nil, nil //nolint:nilerr // nobody has asked for this one
	}
	return e.replace.Recover(ctx, pending.Operation{Worker: w, Journal: j}, p)
}

// recoverFrozen thaws what an unfinished snapshot left frozen, and removes its dead worker. A dead
// worker that froze nothing is removed whatever container it worked for.
func (e *Engine) recoverFrozen(ctx context.Context, w pending.Worker, about pending.Scope) (*replace.Recovery, error) {
	frozen, err := volumebackup.FrozenBy(w.Labels)
	isMine := slices.ContainsFunc(about.Words, func(word string) bool {
		return word == "" || slices.Contains(frozen, word) || dockerop.SummaryName(w.Summary) == volumebackup.LockName(word)
	})
	if err != nil {
		if !isMine {
			err = nil
		}
		return nil, err
	}
	if !isMine && len(frozen) > 0 {
		return nil, nil
	}
	name := e.lockedName(ctx, w)
	isCleared, err := e.copies.Clear(ctx, w)
	if err != nil || !isCleared || !isMine {
		return nil, err
	}
	return &replace.Recovery{Container: name, Text: "an interrupted operation was cleaned up: " + w.Labels[volumebackup.LabelPurpose]}, nil
}

// lockedName is the name of the container that a worker locks, or its own name if it
// locks none.
func (e *Engine) lockedName(ctx context.Context, w pending.Worker) string {
	name := dockerop.SummaryName(w.Summary)
	id, ok := strings.CutPrefix(name, volumebackup.LockName(""))
	if !ok || !labels.IsDigits(id, dockerop.ShortID, dockerop.ShortID) {
		return name
	}
	c, _, err := e.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return name // it is only for people
	}
	return dockerop.ContainerName(c)
}
