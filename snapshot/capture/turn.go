package capture

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// LeftFrozenError means that workers have died which had frozen the writers of what is
// captured. Who thaws them can begin again.
type LeftFrozenError struct{ Workers []pending.Worker }

func (e *LeftFrozenError) Error() string {
	return "an interrupted operation has left containers frozen"
}

// waitTurn checks, once the container's lock is held, that it is still what it was, that
// no restore in place has to do with it or its volumes, and that nobody died who had
// frozen its writers. Then it waits for the operations that freeze the same containers
// and whose workers started earlier: two at once would thaw each other's.
//
// Nobody is missed. A worker is in the engine's list before it starts, and the list is
// asked for afterwards: of two, the one that started later finds the other.
func (r *volumeCapture) waitTurn(ctx context.Context) (waited bool, err error) {
	e, c := r.engine, r.from.Container
	workers, err := e.pending.CheckUnmoved(ctx, c, r.from.storage.Aliases(r.names()), r.p)
	if err != nil {
		return false, err
	}
	if len(workers) == 0 {
		return false, nil
	}
	if dead := pending.Interrupted(workers, r.before.paused); len(dead) > 0 {
		return false, &LeftFrozenError{Workers: dead}
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
