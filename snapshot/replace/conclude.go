package replace

import (
	"context"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// conclude waits for operations that are under way, and recovers those that were interrupted.
func (rp *Replacer) conclude(ctx context.Context, pending []pending.Operation, p plan.Progress) error {
	for _, r := range pending {
		if r.Worker.Alive {
			if err := rp.pending.Await(ctx, r.Worker, r.Journal.Name(), p); err != nil {
				return err
			}
			continue
		}
		done, err := rp.Recover(ctx, r, p)
		if err != nil {
			return err
		}
		if done != nil {
			p.Warn("recover", done.Container+": "+done.Text)
		}
	}
	return nil
}

// Leftovers are settled operations that a command tried to finish in vain, by the IDs of their
// workers. The command tries each once, and then goes on without it.
type Leftovers map[string]bool

// Untried returns the pending operations that the command has not tried yet.
func (l Leftovers) Untried(operations []pending.Operation) []pending.Operation {
	return slices.DeleteFunc(operations, func(r pending.Operation) bool { return l[r.Worker.ID] })
}

// Conclude waits for operations that are under way, and recovers those that were interrupted.
// If a settled one cannot be finished, that is only a warning.
func (l Leftovers) Conclude(ctx context.Context, e *Replacer, operations []pending.Operation, p plan.Progress) error {
	for _, r := range operations {
		err := e.conclude(ctx, []pending.Operation{r}, p)
		if r.IsLeftover() && err != nil && ctx.Err() == nil {
			l[r.Worker.ID] = true
			p.Warn("recover", err.Error())
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Settle waits for restores in place of a container, and recovers those that were interrupted,
// until none is pending.
func (rp *Replacer) Settle(ctx context.Context, name string, p plan.Progress) error {
	for {
		pending, err := rp.pending.Replacements(ctx, pending.Scope{Words: []string{name}}, p)
		if err != nil || len(pending) == 0 {
			return err
		}
		if err := rp.conclude(ctx, pending, p); err != nil {
			return err
		}
	}
}
