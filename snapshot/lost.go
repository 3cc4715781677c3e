package snapshot

import (
	"context"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Lost lists the snapshots that have lost their images, and that match.
func (e *Engine) Lost(ctx context.Context, o catalog.ListOptions, p plan.Progress) ([]archives.Lost, error) {
	all, err := e.archives.Lost(ctx, p)
	if err != nil {
		return nil, err
	}
	snapshots := make([]catalog.Snapshot, len(all))
	for i, l := range all {
		snapshots[i] = l.Snapshot
	}
	chosen, err := o.Choose(snapshots)
	if err != nil {
		return nil, err
	}
	found := make([]archives.Lost, len(chosen))
	for i, s := range chosen {
		at := slices.IndexFunc(all, func(l archives.Lost) bool { return l.ID == s.ID && l.StoreID == s.StoreID })
		found[i] = all[at]
	}
	return found, nil
}
