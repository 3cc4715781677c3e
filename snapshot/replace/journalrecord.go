package replace

import (
	"context"
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// UnknownJournalError means that the store has not recorded the journal of a dead worker.
// Anybody may have written it, so nobody acts on it.
type UnknownJournalError struct {
	Worker    string // its container's name
	Container string // that the journal names
}

func (e *UnknownJournalError) Error() string {
	return fmt.Sprintf("worker %s says that a restore in place of container %s was interrupted, but the store has no record of that: it is left alone", e.Worker, e.Container)
}

// Unwrap gives the error its class.
func (e *UnknownJournalError) Unwrap() error { return cerrdefs.ErrFailedPrecondition }

// isRecorded tells whether the store has recorded a dead worker's journal. It fails if the
// store recorded another one. It also fails if there is no record although something was
// changed: an operation records its journal before it changes anything.
func (rp *Replacer) isRecorded(ctx context.Context, r pending.Operation) (bool, error) {
	unknown := &UnknownJournalError{Worker: dockerop.SummaryName(r.Worker.Summary), Container: r.Journal.Name()}
	err := rp.volumes.CheckJournal(ctx, r.Worker.ID, r.Worker.Labels[pending.LabelJournal])
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, protocol.Damaged):
		return false, unknown
	case !errors.Is(err, protocol.NotFound):
		return false, err
	}
	over, err := rp.isSettled(ctx, r.Worker.ID)
	if err != nil || over {
		return false, err
	}
	untouched, err := rp.isUntouched(ctx, r.Journal)
	if err == nil && !untouched {
		err = unknown
	}
	return false, err
}

// isSettled tells whether the operation of a worker is settled, or the worker is gone. An
// operation drops its record last, possibly after the worker was listed.
func (rp *Replacer) isSettled(ctx context.Context, worker string) (bool, error) {
	now, err := rp.docker.InspectIfThere(ctx, worker)
	if err != nil {
		return false, err
	}
	return now == nil || volumebackup.IsSettled(now.ID, dockerop.ContainerName(*now)), nil
}

// isUntouched tells whether the containers are as they were when the journal was written.
func (rp *Replacer) isUntouched(ctx context.Context, j pending.Journal) (bool, error) {
	for _, m := range j.Members {
		untouched, err := rp.isMemberUntouched(ctx, j, m)
		if err != nil || !untouched {
			return false, err
		}
	}
	return true, nil
}

func (rp *Replacer) isMemberUntouched(ctx context.Context, j pending.Journal, m pending.Member) (bool, error) {
	made, err := rp.findMade(ctx, j, m.Name, m.Snapshot)
	if err != nil || made != nil {
		return false, err
	}
	if m.Old == "" {
		return true, nil
	}
	old, err := rp.docker.InspectIfThere(ctx, m.Old)
	if err != nil || old == nil {
		return false, err
	}
	runs := old.State.Running || old.State.Restarting
	return dockerop.ContainerName(*old) == m.OldName && runs == m.Running && old.State.Paused == m.Paused, nil
}

// discardUnrecorded removes the workers of an operation that changed nothing, or is over.
func (rp *Replacer) discardUnrecorded(ctx context.Context, r pending.Operation) error {
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	return errors.Join(rp.docker.Discard(after, r.Journal.Worker), rp.docker.Discard(after, r.Worker.ID))
}

// discardRecorded removes a dead worker, and the record of its journal.
func (rp *Replacer) discardRecorded(ctx context.Context, worker string) error {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err := rp.docker.Discard(ctx, worker); err != nil {
		return err
	}
	return rp.volumes.ForgetJournal(ctx, worker)
}
