package runs

import (
	"context"
	"time"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// ActionOptions says how to take snapshots around one action.
type ActionOptions struct {
	Container     string         // name, ID or unique ID prefix
	Before, After labels.Trigger // of the snapshots; empty: none
	RunID         string         // the run that they belong to; may be empty
	Timeout       time.Duration
	Policy        retention.Policy // the user's
}

// Action does something in the container with that ID.
type Action func(ctx context.Context, container string) error

// Around does an action, and takes snapshots before and after it. It returns the action's error: a
// snapshot that fails, or takes too long, is a warning. The caller applies the limits when all is over.
func (r *Runner) Around(ctx context.Context, o ActionOptions, action Action, p plan.Progress) error {
	c, _, err := r.docker.ContainerInspectWithRaw(ctx, o.Container, false)
	if err != nil {
		return err // the engine's own words: No such container: x
	}
	t := &run{
		Runner: r, p: p, session: session.Session{Container: dockerop.ContainerName(c)},
		Options: Options{RunID: o.RunID, Timeout: o.Timeout, Policy: o.Policy},
	}
	t.setPolicy(c)
	if o.Before != "" && t.policy.Enabled {
		t.take(ctx, o.Before)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	err = action(ctx, c.ID)
	if o.After != "" && t.policy.Enabled {
		t.take(ctx, o.After)
	}
	return err
}
