package replace

import (
	"context"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// conclude waits for what is under way, and takes back what was interrupted.
func (rp *Replacer) conclude(ctx context.Context, pending []pending.Operation, p plan.Progress) error {
	for _, r := range pending {
		if r.Worker.Alive {
			if err := rp.pending.Await(ctx, r.Worker, r.Journal.Name, p); err != nil {
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

// Leftovers are the settled operations of which a command has tried to do what was
// left, by the IDs of their workers. Once is enough: if it fails, that does not keep
// the command from its work.
type Leftovers map[string]bool

// Untried are the pending operations without those leftovers.
func (l Leftovers) Untried(operations []pending.Operation) []pending.Operation {
	return slices.DeleteFunc(operations, func(r pending.Operation) bool { return l[r.Worker.ID] })
}

// Conclude is [Engine.conclude], to which a leftover that cannot be cleared away is only
// worth a warning.
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

// Settle puts right what was interrupted of restores in place of a container, and
// waits first for what is under way.
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
