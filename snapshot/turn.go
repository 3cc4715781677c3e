package snapshot

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// waitTurn checks, once the container's lock is held, that it is still what it was, that
// no restore in place has to do with it or its volumes, and that nobody died who had
// frozen its writers. Then it waits for the operations that freeze the same containers
// and whose workers started earlier: two at once would thaw each other's.
//
// Nobody is missed. A worker is in the engine's list before it starts, and the list is
// asked for afterwards: of two, the one that started later finds the other.
func (r *reading) waitTurn(ctx context.Context) (waited bool, err error) {
	e, c := r.engine, r.from.container
	workers, err := e.pending.CheckUnmoved(ctx, c, r.from.storage.Aliases(r.names()), r.p)
	if err != nil {
		return false, err
	}
	if len(workers) == 0 {
		return false, nil
	}
	if err := e.recoverWriters(ctx, workers, r.before.paused); err != nil {
		return false, err
	}
	ahead, err := e.pending.StartedBefore(ctx, volumebackup.LockName(c.ID), pending.FreezersOf(workers, r.before.running, true))
	for _, w := range ahead {
		r.p.Status("freeze", "waiting for another operation that freezes the same containers: "+w.Labels[volumebackup.LabelPurpose])
		if err := e.volumes.Await(ctx, w.ID); err != nil {
			return false, err
		}
	}
	return len(ahead) > 0, err
}

// recoverWriters thaws those of the containers that an interrupted operation has left
// frozen, and says with [errMoved] that everything has to be looked at again. What a
// live worker freezes as well is none of a dead one's: that has ended this moment.
func (e *Engine) recoverWriters(ctx context.Context, workers []pending.Worker, containers []string) error {
	var recovered bool
	var failed error
	for _, id := range containers {
		if len(pending.FreezersOf(workers, []string{id}, true)) > 0 {
			continue
		}
		for _, w := range pending.FreezersOf(workers, []string{id}, false) {
			if w.Labels[pending.LabelJournal] != "" {
				continue // it is pending, and more than this is to be done
			}
			recovered = true
			_, err := e.recoverFrozen(ctx, w, pending.Scope{Words: []string{id}})
			failed = errors.Join(failed, err)
		}
	}
	if recovered && failed == nil {
		return pending.ErrMoved
	}
	return failed
}
