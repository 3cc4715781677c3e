package snapshot

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Prune removes the snapshots that are beyond the limits of a retention policy, and tells of each
// snapshot whether it is kept or removed, and why. It finds out itself which runs have not ended.
func (e *Engine) Prune(ctx context.Context, o removal.PruneOptions, p plan.Progress) (removal.Pruned, error) {
	sessions, err := e.keeper.Sessions(ctx)
	if err != nil {
		return removal.Pruned{}, err
	}
	for _, s := range sessions {
		if s.Status == session.StatusUnfinished {
			o.UnfinishedRuns = append(o.UnfinishedRuns, s.RunID)
		}
	}
	return e.removal.Prune(ctx, o, p)
}

// limit applies the limits while a run is under way. Nobody asked for it, so a failure is a warning.
func (e *Engine) limit(ctx context.Context, o retention.Options, p plan.Progress) {
	_, err := e.Prune(ctx, removal.PruneOptions{Options: o}, nil)
	if err != nil && ctx.Err() == nil {
		p.Warn("run", "snapshots beyond the limits were not removed: "+err.Error())
	}
}
