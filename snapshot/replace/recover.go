package replace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

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

// Recover takes an interrupted restore in place back, or finishes it if its
// container has been at work since. It returns nil if somebody else was faster.
func (e *Replacer) Recover(ctx context.Context, r pending.Operation, p plan.Progress) (*Recovery, error) {
	e = e.inStore(e.archives.AtWorker(r.Worker.Summary))
	recorded, err := e.isRecorded(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case !recorded:
		return nil, e.discardUnrecorded(ctx, r)
	case r.IsLeftover():
		return e.finishSettled(ctx, r, p)
	}
	options, err := LockOptions(r.Journal)
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
func (e *Replacer) markSettled(ctx context.Context, worker string) error {
	err := e.docker.ContainerRename(ctx, worker, volumebackup.SettledName(worker))
	return dockerop.Describe(err, "rename worker")
}

// finishSettled does what is left of a settled restore in place.
func (e *Replacer) finishSettled(ctx context.Context, r pending.Operation, p plan.Progress) (*Recovery, error) {
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
func (e *Replacer) concludeReplace(ctx context.Context, j pending.Journal, dead container.InspectResponse, p plan.Progress) (string, error) {
	made, err := e.goneOn(ctx, j, dead)
	if err != nil {
		return "", err
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if made == "" {
		text, err := e.UndoCrashed(ctx, j, later, p)
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
func (e *Replacer) goneOn(ctx context.Context, j pending.Journal, dead container.InspectResponse) (string, error) {
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
