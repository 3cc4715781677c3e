package snapshot

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// Prune removes the snapshots that are beyond the limits of a retention policy, and tells of each
// snapshot whether it is kept or removed, and why.
func (e *Engine) Prune(ctx context.Context, o removal.PruneOptions, p plan.Progress) (removal.Pruned, error) {
	return e.removal.Prune(ctx, o, p)
}

// Outlook tells what the chosen snapshots occupy, how near all of them are to the limits, and what
// pruning would free.
func (e *Engine) Outlook(ctx context.Context, o removal.OutlookOptions, p plan.Progress) (removal.Outlook, error) {
	return e.removal.Outlook(ctx, o, p)
}

// limit applies the limits while a run is under way. Nobody asked for it, so a failure is a warning.
func (e *Engine) limit(ctx context.Context, o retention.Options, p plan.Progress) {
	_, err := e.Prune(ctx, removal.PruneOptions{Options: o}, nil)
	if err != nil && ctx.Err() == nil {
		p.Warn("run", "snapshots beyond the limits were not removed: "+err.Error())
	}
}
