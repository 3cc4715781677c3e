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

// stopAll stops the old container and the sharers of its volumes, so that nobody writes to them.
//
// A stop is not cancelled midway. The engine would go on with it, and stop a container that
// was started again meanwhile.
func (rp *Replacer) stopAll(ctx context.Context, j pending.Journal, timeout *int, p plan.Progress) error {
	detached := context.WithoutCancel(ctx)
	for _, o := range slices.Backward(j.Others) { // who depends on others goes first
		p.Status("stop", "stopping container "+o.Name)
		if err := rp.docker.Stop(detached, o.ID, o.Paused, nil); err != nil {
			return fmt.Errorf("stop container %s: %w", o.Name, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if j.Old == "" {
		return nil
	}
	p.Status("stop", "stopping container "+j.OldName)
	if j.Policy != "" { // or a restart of the engine would start it
		if err := rp.docker.SetRestartPolicy(detached, j.Old, container.RestartPolicy{Name: container.RestartPolicyDisabled}); err != nil {
			return err
		}
	}
	if err := rp.docker.Stop(detached, j.Old, j.Paused, timeout); err != nil {
		return fmt.Errorf("stop container %s: %w", j.OldName, err)
	}
	return context.Cause(ctx)
}

// stepAside renames the old container, so that the new one can have its name.
func (rp *Replacer) stepAside(ctx context.Context, j pending.Journal) error {
	switch {
	case j.Old == "":
		return nil
	case j.OneShot:
		return rp.docker.AwaitGone(ctx, j.Old)
	}
	if err := rp.docker.ContainerRename(context.WithoutCancel(ctx), j.Old, j.Aside); err != nil {
		return fmt.Errorf("rename container %s: %w", j.OldName, err)
	}
	return context.Cause(ctx)
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
	err := rp.docker.ContainerStart(ctx, o.ID, container.StartOptions{})
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
