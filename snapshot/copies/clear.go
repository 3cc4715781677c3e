package copies

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// ClearCopies removes what restores into new containers have left that were
// killed. That it cannot is no reason not to restore.
func (cp *Copier) ClearCopies(ctx context.Context, p plan.Progress) {
	var workers []pending.Worker
	var calls errgroup.Group
	calls.Go(func() (err error) {
		_, err = cp.RemoveUnfinished(ctx, "", UnfinishedAge)
		return err
	})
	calls.Go(func() (err error) {
		workers, err = cp.pending.Workers(ctx, pending.LabelMade)
		return err
	})
	err := calls.Wait()
	for _, w := range workers {
		if !w.Alive {
			err = errors.Join(err, cp.clearMade(ctx, w))
		}
	}
	if err != nil && ctx.Err() == nil {
		p.Warn("check", fmt.Sprintf("what an interrupted restore left could not be cleared away: %v", err))
	}
}

// clearMade removes a dead worker, and what its restore has made.
func (cp *Copier) clearMade(ctx context.Context, w pending.Worker) error {
	if err := cp.pending.Clear(ctx, w); err != nil {
		return err
	}
	return cp.RemoveMade(ctx, w.Summary)
}
