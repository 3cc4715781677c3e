package capture

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// LeftFrozenError means that dead workers left writers frozen. The caller thaws them and begins
// again.
type LeftFrozenError struct{ Workers []pending.Worker }

func (e *LeftFrozenError) Error() string {
	return "an interrupted operation has left containers frozen"
}

// waitTurn is called once the lock is held. It checks that the container is unchanged, that no
// restore in place concerns it or its volumes, and that no dead worker left its writers frozen.
// Then it waits for operations that freeze the same containers and whose workers started earlier:
// two at once would thaw each other's containers.
//
// It misses nobody. A worker is in the engine's list before it starts, and the list is read
// afterwards: of two workers, the one that started later finds the other.
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
