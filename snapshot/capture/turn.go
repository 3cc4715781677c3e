package capture

import (
	"context"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// LeftFrozenError means that dead workers left writers frozen. The caller thaws them and begins
// again.
type LeftFrozenError struct{ Workers []pending.Worker }

func (e *LeftFrozenError) Error() string {
	return "an interrupted operation has left containers frozen"
}

// waitTurn is called once the lock is held. It checks that the containers are unchanged, that no
// restore in place concerns them or their volumes, and that no dead worker left writers frozen.
// Then it waits for operations that freeze the same containers and whose workers started earlier:
// two at once would thaw each other's containers.
//
// It misses nobody. A worker is in the engine's list before it starts, and the list is read
// afterwards: of two workers, the one that started later finds the other.
func (r *attempt) waitTurn(ctx context.Context) (waited bool, err error) {
	e := r.engine
	var sources []container.InspectResponse
	var volumes []string
	for _, one := range r.parts {
		sources = append(sources, one.from.Container)
		volumes = append(volumes, one.from.storage.Aliases(one.names())...)
	}
	workers, err := e.pending.CheckUnmoved(ctx, sources, volumes, r.p)
	if err != nil {
		return false, err
	}
	if len(workers) == 0 {
		return false, nil
	}
	if dead := pending.Interrupted(workers, r.before.paused); len(dead) > 0 {
		return false, &LeftFrozenError{Workers: dead}
	}
	ahead, err := e.pending.StartedBefore(ctx, volumebackup.JournalLock(r.containers()), pending.FreezersOf(workers, r.before.running, true))
	for _, w := range ahead {
		r.p.Status("freeze", "waiting for another operation that freezes the same containers: "+w.Labels[volumebackup.LabelPurpose])
		if err := e.volumes.Await(ctx, w.ID); err != nil {
			return false, err
		}
	}
	return len(ahead) > 0, err
}
