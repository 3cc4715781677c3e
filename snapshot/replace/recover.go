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

// Recover rolls an interrupted restore in place back, or finishes it if its new container has
// been at work for long. It returns nil if another process recovered it first.
func (rp *Replacer) Recover(ctx context.Context, r pending.Operation, p plan.Progress) (*Recovery, error) {
	rp = rp.inStore(rp.archives.AtWorker(r.Worker.Summary))
	recorded, err := rp.isRecorded(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case !recorded:
		return nil, rp.discardUnrecorded(ctx, r)
	case r.IsLeftover():
		return rp.finishSettled(ctx, r, p)
	}
	// The journal stays with the dead worker until everything is settled.
	lock, err := rp.volumes.TakeLock(ctx, lockOptions(r.Journal), nil)
	if err != nil {
		return nil, err
	}
	dead, err := rp.docker.InspectIfThere(ctx, r.Worker.ID)
	if dead == nil || err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	text, err := rp.concludeReplace(ctx, r.Journal, *dead, p)
	if text == "" { // its journal says the same as the one that is there
		return nil, errors.Join(err, lock.Close())
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err == nil { // else something is left to do
		err = rp.discardRecorded(after, r.Worker.ID)
	}
	return &Recovery{Container: r.Journal.Name, Text: text}, errors.Join(err, lock.Close())
}

// markSettled marks the journal of a dead worker as settled.
func (rp *Replacer) markSettled(ctx context.Context, worker string) error {
	err := rp.docker.ContainerRename(ctx, worker, volumebackup.SettledName(worker))
	return dockerop.Describe(err, "rename worker")
}

// finishSettled finishes a settled restore in place.
func (rp *Replacer) finishSettled(ctx context.Context, r pending.Operation, p plan.Progress) (*Recovery, error) {
	if err := rp.finishReplace(ctx, r.Journal, p); err != nil {
		return nil, err
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err := rp.discardRecorded(after, r.Worker.ID); err != nil {
		return nil, err
	}
	return &Recovery{Container: r.Journal.Name, Text: fmt.Sprintf("the rest of the restore of %s was done", r.Journal.Snapshot)}, nil
}

// concludeReplace rolls back or finishes the operation of a dead worker. It returns what there is
// now, for people; nothing if it failed. An error beside a text is a [NotStartedError].
func (rp *Replacer) concludeReplace(ctx context.Context, j pending.Journal, dead container.InspectResponse, p plan.Progress) (string, error) {
	made, err := rp.goneOn(ctx, j, dead)
	if err != nil {
		return "", err
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if made == "" {
		text, err := rp.rollBackLater(j, p).runAfterStop(ctx)
		if text == "" {
			return "", err
		}
		return text, errors.Join(err, rp.markSettled(after, dead.ID))
	}
	if err := rp.markSettled(after, dead.ID); err != nil {
		return "", err
	}
	text := fmt.Sprintf("the restore of %s was completed: container %s (%s) has been at work since the interruption", j.Snapshot, j.Name, made[:dockerop.ShortID])
	if j.Safety != "" {
		text += fmt.Sprintf("; what was there before is in snapshot %s", j.Safety)
	}
	return text, rp.finishReplace(after, j, p)
}

// goneOnFor is the longest time that the new container may have run after the interruption for
// the restore to be rolled back.
const goneOnFor = 2 * time.Minute

// goneOn returns the ID of the new container if it ran for long after the interruption. A
// rollback would lose what it has written since.
func (rp *Replacer) goneOn(ctx context.Context, j pending.Journal, dead container.InspectResponse) (string, error) {
	made, err := rp.findMade(ctx, j.Name, j.Snapshot, j.Old)
	if err != nil || made == nil {
		return "", err
	}
	last := dockerop.TimeOf(made.State.FinishedAt)
	if made.State.Running || made.State.Restarting {
		if last, err = rp.docker.Time(ctx); err != nil {
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
