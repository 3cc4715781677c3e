package replace

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// AwaitStop waits until the engine is done with stopping one of the containers of
// a restore in place. It goes on with that when its client has died, and would
// kill at the end what was taken to be running, or was started again.
//
// They are stopped one after the other, so it can only be the first that still
// runs, and only if all after it do. Whether it is being stopped cannot be seen,
// so it is given the time that it has.
func (b *rollback) awaitStop(ctx context.Context) error {
	var suspect *pending.Other // the first that runs after the last that does not
	for _, o := range b.journal.Stopped() {
		c, err := b.engine.docker.InspectIfThere(ctx, o.ID)
		switch {
		case err != nil:
			return err
		case c == nil || !c.State.Running:
			suspect = nil
		case suspect == nil && !c.State.Paused && (o.ID != b.journal.Old || mayBeStopping(*c, b.journal)):
			suspect = &o
		}
	}
	if suspect == nil {
		return nil
	}
	b.p.Status("undo", "waiting in case the engine is still stopping container "+suspect.Name)
	deadline := b.engine.now().Add(time.Duration(suspect.Timeout)*time.Second + runconfig.StopGrace)
	return dockerop.Poll(ctx, func() (bool, error) {
		c, err := b.engine.docker.InspectIfThere(ctx, suspect.ID)
		if err != nil {
			return false, fmt.Errorf("inspect container %s: %w", suspect.Name, err)
		}
		return c == nil || !c.State.Running || !b.engine.now().Before(deadline), nil
	})
}

// mayBeStopping tells whether the old container may have been told to stop: its
// restart policy is switched off before, and it steps aside afterwards.
func mayBeStopping(old container.InspectResponse, j pending.Journal) bool {
	if dockerop.ContainerName(old) != j.OldName {
		return false
	}
	return j.Policy == "" || string(old.HostConfig.RestartPolicy.Name) != j.Policy
}
