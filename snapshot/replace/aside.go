package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// stopAll stops the old containers and the sharers of their volumes, so that nobody writes to them. Who
// depends on others goes first.
//
// A stop is not cancelled midway. The engine would go on with it, and stop a container that
// was started again meanwhile.
func (t *transaction) stopAll(ctx context.Context) error {
	detached := context.WithoutCancel(ctx)
	for _, o := range slices.Backward(t.others) {
		t.p.Status("stop", "stopping container "+o.Name)
		if err := t.engine.docker.Stop(detached, o.ID, o.Paused, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", o.Name, err)
		}
	}
	for i, m := range slices.Backward(t.journal.Members) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if m.Old == "" {
			continue
		}
		if err := t.stopOld(detached, m, t.members[i].options.StopTimeout); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// stopOld stops an old container.
func (t *transaction) stopOld(ctx context.Context, m pending.Member, timeout *int) error {
	if t.live {
		return t.engine.freeze(ctx, m, t.p)
	}
	t.p.Status("stop", "stopping container "+m.OldName)
	if m.Policy != "" { // or a restart of the engine would start it
		if err := t.engine.docker.SetRestartPolicy(ctx, m.Old, container.RestartPolicy{Name: container.RestartPolicyDisabled}); err != nil {
			return err
		}
	}
	if err := t.engine.docker.Stop(ctx, m.Old, m.Paused, timeout); err != nil {
		return fmt.Errorf("stop container %s: %w", m.OldName, err)
	}
	return nil
}

// stepAside renames the old containers, so that the new ones can have their names.
func (t *transaction) stepAside(ctx context.Context) error {
	if t.live {
		return nil
	}
	for _, m := range t.journal.Members {
		switch {
		case m.Old == "":
			continue
		case m.OneShot:
			if err := t.engine.docker.AwaitGone(ctx, m.Old); err != nil {
				return err
			}
			continue
		}
		if err := t.engine.docker.ContainerRename(context.WithoutCancel(ctx), m.Old, m.Aside); err != nil {
			return fmt.Errorf("rename container %s: %w", m.OldName, err)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startOthers starts the sharers that were stopped, and returns why some do not start. A
// failure does not roll anything back, but the journal stays until they run. A sharer that
// somebody removed is only a warning.
func (rp *Replacer) startOthers(ctx context.Context, others []pending.Other, p plan.Progress) error {
	var failed error
	for _, o := range others {
		err := rp.startOther(ctx, o)
		switch {
		case errors.Is(err, errGone):
			p.Warn("start", fmt.Sprintf("container %s, which was stopped for its volumes, was removed meanwhile", o.Name))
		case err != nil:
			err = errors.Join(err, rp.docker.ReconnectAfter(ctx, o.ID, o.Endpoints))
			failed = errors.Join(failed, fmt.Errorf("container %s, which was stopped for its volumes, could not be started again: %w", o.Name, err))
		}
	}
	return failed
}

// errGone means that somebody has removed a container.
var errGone = errors.New("the container was removed")

func (rp *Replacer) startOther(ctx context.Context, o pending.Other) error {
	err := rp.docker.Start(ctx, o.ID)
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) { // it is paused, or about to be removed, or gone
		c, inspectErr := rp.docker.InspectIfThere(ctx, o.ID)
		switch {
		case inspectErr != nil:
			return errors.Join(err, inspectErr)
		case c == nil:
			return errGone
		case c.State.Paused:
			return nil
		}
	}
	if err != nil || !o.Paused {
		return err
	}
	return rp.docker.MakePaused(ctx, o.ID)
}
