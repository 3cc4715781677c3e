package archives

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Holding is what one store holds, and the snapshots that it holds it for.
type Holding struct {
	volumebackup.Usage

	Store     string             // the volume
	Snapshots []catalog.Snapshot // those that were asked for
}

// Usage measures, in each store that holds archives of one of the snapshots, what they occupy. The
// stores may hold archives of others, too.
func (a *Archives) Usage(ctx context.Context, all []catalog.Snapshot) ([]Holding, error) {
	stores, failed := a.byStore(ctx, all)
	for _, err := range failed {
		return nil, err
	}
	var held []Holding
	for _, one := range stores {
		usage, err := one.volumes.Usage(ctx)
		if err != nil {
			return nil, err
		}
		held = append(held, Holding{usage, one.volumes.Store(), one.snapshots})
	}
	return held, nil
}
