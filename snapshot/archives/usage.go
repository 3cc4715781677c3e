package archives

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Holding is what one store holds, and the snapshots that it holds it for.
type Holding struct {
	volumebackup.Usage

	Store     string             // the volume
	Snapshots []catalog.Snapshot // those that were asked for
}

// Usage measures, in each store that holds archives of one of the snapshots, what they occupy. The
// stores may hold archives of others, too. A store that cannot be read is left out, with a warning: it keeps nobody from knowing the
// others.
func (a *Archives) Usage(ctx context.Context, all []catalog.Snapshot, p plan.Progress) ([]Holding, error) {
	stores, failed := a.byStore(ctx, all)
	unread := map[string]error{} // by store
	for _, s := range all {
		if err := failed[s.ID]; err != nil {
			unread[s.Store] = err
		}
	}
	var held []Holding
	for _, one := range stores {
		usage, err := one.volumes.Usage(ctx)
		if err != nil {
			unread[one.volumes.Store()] = err
			continue
		}
		held = append(held, Holding{usage, one.volumes.Store(), one.snapshots})
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, store := range slices.Sorted(maps.Keys(unread)) {
		p.Warn("measure", fmt.Sprintf("what store %s holds is not counted: %v", store, unread[store]))
	}
	return held, nil
}
