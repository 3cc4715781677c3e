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

// awaitStop waits until the engine is no longer stopping a container for a client that died. The
// engine goes on with such a stop, and would kill the container after it was started again.
//
// The containers are stopped one after the other. So only the first that still runs can be in the
// middle of a stop, and only if all after it run, too. The engine does not show whether it is
// stopping one, so awaitStop waits for as long as that may take.
func (b *rollback) awaitStop(ctx context.Context) error {
	var suspect *pending.Other // the first that runs after the last that does not
	for _, o := range b.journal.Stopped() {
		c, err := b.engine.docker.InspectIfThere(ctx, o.ID)
		switch {
		case err != nil:
			return err
		case c == nil || !c.State.Running:
			suspect = nil
		case suspect == nil && !c.State.Paused && mayBeStopping(*c, b.journal):
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

// mayBeStopping tells whether a container may be in the middle of a stop. Before the stop of an old
// one, its restart policy was switched off; after it, the container was renamed.
func mayBeStopping(c container.InspectResponse, j pending.Journal) bool {
	for _, m := range j.Members {
		if m.Old == c.ID {
			isOff := m.Policy == "" || string(c.HostConfig.RestartPolicy.Name) != m.Policy
			return dockerop.ContainerName(c) == m.OldName && isOff
		}
	}
	return true
}
