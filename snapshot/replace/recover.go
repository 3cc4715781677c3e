package replace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
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
	lock, err := rp.volumes.TakeLock(ctx, lockOptions(r.Journal), archives.Progress(p))
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
	if err == nil { // else something is left to do
		err = rp.discardRecorded(ctx, r.Worker.ID)
	}
	return &Recovery{Container: r.Journal.Name(), Text: text}, errors.Join(err, lock.Close())
}

// markSettled marks the journal of a dead worker as settled. What came before may have taken as long as the volumes are large.
func (rp *Replacer) markSettled(ctx context.Context, worker string) error {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	err := rp.docker.ContainerRename(ctx, worker, volumebackup.SettledName(worker))
	return dockerop.Describe(err, "rename worker")
}

// finishSettled finishes a settled restore in place.
func (rp *Replacer) finishSettled(ctx context.Context, r pending.Operation, p plan.Progress) (*Recovery, error) {
	if err := rp.finishReplace(ctx, r.Journal, p); err != nil {
		return nil, err
	}
	if err := rp.discardRecorded(ctx, r.Worker.ID); err != nil {
		return nil, err
	}
	return &Recovery{Container: r.Journal.Name(), Text: "the rest of the restore of " + strings.Join(r.Journal.Snapshots(), " and ") + " was done"}, nil
}

// concludeReplace rolls back or finishes the operation of a dead worker. It returns what there is
// now, for people; nothing if it failed. An error beside a text is a [NotStartedError].
func (rp *Replacer) concludeReplace(ctx context.Context, j pending.Journal, dead container.InspectResponse, p plan.Progress) (string, error) {
	made, err := rp.goneOn(ctx, j, dead)
	if err != nil {
		return "", err
	}
	if made == nil {
		text, err := rp.rollBackLater(j, p).runAfterStop(ctx)
		if text == "" {
			return "", err
		}
		return text, errors.Join(err, rp.markSettled(ctx, dead.ID))
	}
	ctx = context.WithoutCancel(ctx)
	notStarted := rp.startNew(ctx, j, made, dead)
	if err := rp.markSettled(ctx, dead.ID); err != nil {
		return "", err
	}
	return describeCompleted(j, made), errors.Join(notStarted, rp.finishReplace(ctx, j, p))
}

// describeCompleted says that the new containers stay.
func describeCompleted(j pending.Journal, made []container.InspectResponse) string {
	lines := make([]string, len(made))
	for i, m := range j.Members {
		done := fmt.Sprintf("the restore of %s was completed", m.Snapshot)
		if j.Keeps { // it may have come to nothing, and its user has gone on
			done = "nothing was put back"
		}
		lines[i] = fmt.Sprintf("%s: container %s (%s) has been at work since the interruption", done, m.Name, made[i].ID[:dockerop.ShortID])
		if m.Safety != "" {
			lines[i] += fmt.Sprintf("; what was there before is in snapshot %s", m.Safety)
		}
	}
	return strings.Join(lines, "\n")
}

// startNew starts the new containers that the interrupted client did not come to start.
func (rp *Replacer) startNew(ctx context.Context, j pending.Journal, made []container.InspectResponse, dead container.InspectResponse) error {
	var failed error
	for i, m := range j.Members {
		if j.Keeps {
			failed = errors.Join(failed, rp.startKeptLater(ctx, m, made[i], dead))
			continue
		}
		if m.Starts && dockerop.TimeOf(made[i].State.StartedAt).IsZero() {
			failed = errors.Join(failed, dockerop.Describe(rp.docker.Start(ctx, made[i].ID), "start container "+m.Name))
		}
	}
	if failed != nil {
		return &NotStartedError{Container: j.Name(), Err: failed}
	}
	return nil
}

// goneOnFor is the longest time that a new container may have run after the interruption for
// the restore to be rolled back.
const goneOnFor = 2 * time.Minute

// goneOn returns the new containers, one for each member, if one of them ran for long after the
// interruption. A rollback would lose what it has written since. None is started before all are made.
func (rp *Replacer) goneOn(ctx context.Context, j pending.Journal, dead container.InspectResponse) ([]container.InspectResponse, error) {
	find := rp.findAllMade
	if j.Keeps {
		find = rp.findKept
	}
	all, err := find(ctx, j)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	last, err := rp.lastAtWork(ctx, all)
	if err != nil {
		return nil, err
	}
	interrupted := dockerop.TimeOf(dead.State.FinishedAt)
	if interrupted.IsZero() { // it never ran, or the engine does not know when it ended
		interrupted = dockerop.TimeOf(dead.Created)
	}
	if last.Sub(interrupted) <= goneOnFor {
		return nil, nil
	}
	return all, nil
}

// findAllMade finds the new containers; none, if one of them is missing.
func (rp *Replacer) findAllMade(ctx context.Context, j pending.Journal) ([]container.InspectResponse, error) {
	var all []container.InspectResponse
	for _, m := range j.Members {
		made, err := rp.findMade(ctx, j, m.Name, m.Snapshot)
		if err != nil || made == nil {
			return nil, err
		}
		all = append(all, *made)
	}
	return all, nil
}

// lastAtWork is when one of some containers ran last.
func (rp *Replacer) lastAtWork(ctx context.Context, all []container.InspectResponse) (time.Time, error) {
	var last time.Time
	for _, c := range all {
		if c.State.Running || c.State.Restarting {
			return rp.docker.Time(ctx)
		}
		if ended := dockerop.TimeOf(c.State.FinishedAt); ended.After(last) {
			last = ended
		}
	}
	return last, nil
}
