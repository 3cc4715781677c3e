package snapshot

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Run runs a command with snapshots of a container around it.
func (e *Engine) Run(ctx context.Context, o runs.Options, command runs.Command, p plan.Progress) (runs.Result, error) {
	return e.runner.Run(ctx, o, command, p)
}

// Around takes a snapshot of a container before or after an action, or both.
func (e *Engine) Around(ctx context.Context, o runs.ActionOptions, action runs.Action, p plan.Progress) error {
	return e.runner.Around(ctx, o, action, p)
}

// Sessions lists the sessions of all runs, the newest first.
func (e *Engine) Sessions(ctx context.Context) ([]session.Session, error) {
	return e.keeper.Sessions(ctx)
}

// Session returns the session of a run.
func (e *Engine) Session(ctx context.Context, runID string) (session.Session, error) {
	return e.keeper.Session(ctx, runID)
}

// RemoveSession removes the session of a run. Its snapshots stay.
func (e *Engine) RemoveSession(ctx context.Context, runID string) error {
	return e.keeper.Remove(ctx, runID)
}

// AnnotateSession stores the caller's network events, a JSON list, in the session of a run.
func (e *Engine) AnnotateSession(ctx context.Context, runID string, networkEvents []byte) error {
	return e.keeper.Annotate(ctx, runID, networkEvents)
}
