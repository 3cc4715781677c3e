package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Recovery says what was put right after an interrupted operation.
type Recovery struct {
	Container string
	Text      string
}

// Recover puts right what interrupted operations left: of one container, or of
// all if its name is empty. Operations that are under way are left alone. If nothing of them
// is left, it sweeps the store of new snapshots; for all containers, all stores.
func (e *Engine) Recover(ctx context.Context, name string, p plan.Progress) ([]Recovery, error) {
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
	var done []Recovery
	var failed error
	if name == "" {
		done, failed = e.recoverUnfinished(ctx)
	}
	for _, w := range workers {
		if w.Alive {
			continue
		}
		r, err := e.recoverWorker(ctx, w, about, p)
		failed = errors.Join(failed, err)
		if r != nil {
			done = append(done, *r)
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

// endingPatience is how long a worker may take to end after its client was killed: it has to
// notice, and so has the engine.
const endingPatience = 3 * time.Second

// restingWorkers lists the workers. Those that work for one of these containers may be
// about to end, and are waited for, but not for long: they may as well be at work.
func (e *Engine) restingWorkers(ctx context.Context, about pending.Scope, p plan.Progress) (workers []pending.Worker, err error) {
	deadline := e.now().Add(endingPatience)
	err = dockerop.Poll(ctx, func() (bool, error) {
		workers, err = e.pending.Workers(ctx, volumebackup.LabelPurpose)
		at := slices.IndexFunc(workers, func(w pending.Worker) bool { return w.Alive && about.IsServedBy(w) })
		if err != nil || at < 0 || e.now().After(deadline) {
			return true, err
		}
		p.Status("check", "looking whether this goes on: "+workers[at].Labels[volumebackup.LabelPurpose])
		return false, nil
	})
	return workers, err
}

// Settle puts right what was interrupted of restores in place of a container, and
// waits first for what is under way.
func (e *Engine) Settle(ctx context.Context, name string, p plan.Progress) error {
	for {
		pending, err := e.pending.Replacements(ctx, pending.Scope{Words: []string{name}}, p)
		if err != nil || len(pending) == 0 {
			return err
		}
		if err := e.conclude(ctx, pending, p); err != nil {
			return err
		}
	}
}

// thawInterrupted thaws what dead workers have left frozen.
func (e *Engine) thawInterrupted(ctx context.Context, dead []pending.Worker) error {
	var failed error
	for _, w := range dead {
		_, err := e.recoverFrozen(ctx, w, pending.Scope{Words: []string{""}})
		failed = errors.Join(failed, err)
	}
	return failed
}

// recoverUnfinished removes copies that were never finished.
func (e *Engine) recoverUnfinished(ctx context.Context) ([]Recovery, error) {
	removed, err := e.copies.RemoveUnfinished(ctx, "", copies.UnfinishedAge)
	var done []Recovery
	for _, name := range removed {
		done = append(done, Recovery{Container: name, Text: "a copy whose restore was interrupted was removed"})
	}
	return done, err
}

// recoverWorker puts right what one dead worker stands for. It returns nil if
// that is another container's business.
func (e *Engine) recoverWorker(ctx context.Context, w pending.Worker, about pending.Scope, p plan.Progress) (*Recovery, error) {
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
	return e.recoverReplace(ctx, pending.Operation{Worker: w, Journal: j}, p)
}

// recoverReplace takes an interrupted restore in place back, or finishes it if its
// container has been at work since. It returns nil if somebody else was faster.
func (e *Engine) recoverReplace(ctx context.Context, r pending.Operation, p plan.Progress) (*Recovery, error) {
	e = e.on(e.archives.AtWorker(r.Worker.Summary))
	recorded, err := e.isRecorded(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case !recorded:
		return nil, e.discardUnrecorded(ctx, r)
	case r.IsLeftover():
		return e.finishSettled(ctx, r, p)
	}
	options, err := lockOptions(r.Journal)
	if err != nil {
		return nil, err
	}
	options.Journal = nil // it stays with the dead worker until everything is settled
	lock, err := e.volumes.OpenRestore(ctx, options, nil)
	if err != nil {
		return nil, err
	}
	dead, err := e.docker.InspectIfThere(ctx, r.Worker.ID)
	if dead == nil || err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	text, err := e.concludeReplace(ctx, r.Journal, *dead, p)
	if text == "" { // its journal says the same as the one that is there
		return nil, errors.Join(err, lock.Close())
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err == nil { // else something is left to do
		err = e.discardRecorded(after, r.Worker.ID)
	}
	return &Recovery{Container: r.Journal.Name, Text: text}, errors.Join(err, lock.Close())
}

// markSettled has a dead worker's journal say that its operation is settled.
func (e *Engine) markSettled(ctx context.Context, worker string) error {
	err := e.docker.ContainerRename(ctx, worker, volumebackup.SettledName(worker))
	return dockerop.Describe(err, "rename worker")
}

// finishSettled does what is left of a settled restore in place.
func (e *Engine) finishSettled(ctx context.Context, r pending.Operation, p plan.Progress) (*Recovery, error) {
	if err := e.finishReplace(ctx, r.Journal, p); err != nil {
		return nil, err
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err := e.discardRecorded(after, r.Worker.ID); err != nil {
		return nil, err
	}
	return &Recovery{Container: r.Journal.Name, Text: fmt.Sprintf("what the restore of %s had left to do was done", r.Journal.Snapshot)}, nil
}

// concludeReplace does what a dead worker's journal calls for. It returns what there
// is now, unless that failed; an error beside it is a [NotStartedError].
func (e *Engine) concludeReplace(ctx context.Context, j pending.Journal, dead container.InspectResponse, p plan.Progress) (string, error) {
	made, err := e.goneOn(ctx, j, dead)
	if err != nil {
		return "", err
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if made == "" {
		text, err := e.undoCrashed(ctx, j, later, p)
		if text == "" {
			return "", err
		}
		return text, errors.Join(err, e.markSettled(after, dead.ID))
	}
	if err := e.markSettled(after, dead.ID); err != nil {
		return "", err
	}
	text := fmt.Sprintf("the restore of %s was finished: container %s (%s) has been at work since it was interrupted", j.Snapshot, j.Name, made[:dockerop.ShortID])
	if j.Safety != "" {
		text += fmt.Sprintf("; what was there before is in snapshot %s", j.Safety)
	}
	return text, e.finishReplace(after, j, p)
}

// goneOnFor is how long a new container may have run on after its restore was
// interrupted for the restore to be taken back.
const goneOnFor = 2 * time.Minute

// goneOn returns the ID of the new container if it was running for long after the
// restore that made it was interrupted: what it has written since is not to be lost.
func (e *Engine) goneOn(ctx context.Context, j pending.Journal, dead container.InspectResponse) (string, error) {
	made, err := e.findMade(ctx, j.Name, j.Snapshot, j.Old)
	if err != nil || made == nil {
		return "", err
	}
	last := dockerop.TimeOf(made.State.FinishedAt)
	if made.State.Running || made.State.Restarting {
		if last, err = e.docker.Time(ctx); err != nil {
			return "", err
		}
	}
	interrupted := dockerop.TimeOf(dead.State.FinishedAt)
	if interrupted.IsZero() { // it never ran, or the engine does not know when it ended
		interrupted = dockerop.TimeOf(dead.Created)
	}
	if last.Sub(interrupted) <= goneOnFor {
		return "", nil
	}
	return made.ID, nil
}

// recoverFrozen thaws what stood still for a snapshot that was not finished. A
// worker for which nothing does is removed, whoever it worked for.
func (e *Engine) recoverFrozen(ctx context.Context, w pending.Worker, about pending.Scope) (*Recovery, error) {
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
	if err := e.pending.Clear(ctx, w); err != nil {
		return nil, err
	}
	if err := e.copies.RemoveMade(ctx, w.Summary); err != nil {
		return nil, err
	}
	if !isMine {
		return nil, nil
	}
	return &Recovery{Container: name, Text: "an interrupted operation was cleaned up: " + w.Labels[volumebackup.LabelPurpose]}, nil
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
