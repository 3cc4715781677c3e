package snapshot

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// List returns the snapshots that match, in one engine call, and beside it one look
// for the store that holds what their volumes had.
func (e *Engine) List(ctx context.Context, o catalog.ListOptions, p plan.Progress) ([]catalog.Snapshot, error) {
	var found []catalog.Snapshot
	var stores archives.KnownStores
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		found, err = e.catalog.List(callsCtx, o, p)
		return err
	})
	calls.Go(func() (err error) {
		stores, err = e.archives.OwnStore(callsCtx)
		return err
	})
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	return found, e.archives.MarkGone(ctx, found, stores, p)
}
