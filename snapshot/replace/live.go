package replace

import (
	"context"
	"errors"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// A container that is kept may be frozen instead of stopped. It bears its name all the time, and is thawed when the
// operation is settled: after the point of no return, or when a rollback is over. Whether its volumes may hold a mixture
// is told by the safety snapshot alone.

// isFrozen tells whether a member is frozen while its volumes are written.
func (m *member) isFrozen() bool {
	return m.options.Live && m.Old != nil && m.Old.State.Running && !m.Old.State.Paused
}

// frozen are the IDs of the containers that are frozen.
func (g *group) frozen() []string {
	var ids []string
	for _, m := range g.members {
		if m.isFrozen() {
			ids = append(ids, m.Old.ID)
		}
	}
	return ids
}

// freeze pauses a container that runs. One that is paused already stays so.
func (rp *Replacer) freeze(ctx context.Context, m pending.Member, p plan.Progress) error {
	c, err := rp.docker.InspectIfThere(ctx, m.Old)
	if err != nil || c == nil || !c.State.Running || c.State.Paused {
		return err
	}
	p.Status("freeze", "freezing container "+m.OldName)
	return rp.docker.MakePaused(ctx, m.Old)
}

// finishFrozen makes sure that nobody has used the volumes since they were checked. The containers stay frozen until the
// transaction is committed.
func (t *transaction) finishFrozen(ctx context.Context) error {
	for _, m := range t.members {
		m.newID = m.Old.ID
	}
	return t.checkFrozen(ctx)
}

// checkFrozen fails if somebody has let a container run whose volumes are being written.
func (t *transaction) checkFrozen(ctx context.Context) error {
	for _, m := range t.journal.Members {
		c, err := t.engine.docker.InspectIfThere(ctx, m.Old)
		if err != nil {
			return err
		}
		if c == nil || c.State.Running && !c.State.Paused {
			return fmt.Errorf("container %s was thawed or removed by somebody while its volumes were written", m.OldName)
		}
	}
	return nil
}

// thawRestored lets the containers run again whose volumes were restored. After a rollback, which removes the safety
// snapshots, they run already.
func (rp *Replacer) thawRestored(ctx context.Context, j pending.Journal) error {
	var failed error
	for _, m := range j.Members {
		if !m.Running || m.Paused {
			continue
		}
		err := rp.thawOne(ctx, m)
		failed = errors.Join(failed, dockerop.Describe(err, "let container "+m.OldName+" run again"))
	}
	if failed != nil {
		return &NotStartedError{Container: j.Name(), Err: failed}
	}
	return nil
}

func (rp *Replacer) thawOne(ctx context.Context, m pending.Member) error {
	c, err := rp.docker.InspectIfThere(ctx, m.Old)
	if err != nil || c == nil || !c.State.Paused {
		return err
	}
	safety, err := rp.findSafety(ctx, m)
	if err != nil || safety == nil {
		return err
	}
	_, err = rp.docker.Thaw(ctx, []string{m.Old})
	return err
}
