package volumebackup

import (
	"context"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Await waits until a worker is not at work any more, for as long as TakeLock would. It recovers nothing.
func (s *Service) Await(ctx context.Context, workerID string) error {
	deadline := time.NewTimer(s.lockTimeout)
	defer deadline.Stop()
	for {
		worker, _, err := s.docker.ContainerInspectWithRaw(ctx, workerID, false)
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look at worker %s: %w", workerID, err)
		}
		alive, err := isAlive(ctx, s.docker, worker)
		if err != nil || !alive {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return lockedBy(worker)
		case <-time.After(lockPoll):
		}
	}
}

// startGrace is how long a worker may exist before it runs.
const startGrace = 10 * time.Second

// IsAlive tells whether a worker is at work, about to start, or about to be gone. Both times have to be the engine's: a
// client's clock may be minutes off.
func IsAlive(state container.ContainerState, created, now time.Time) bool {
	switch state {
	case container.StateRunning, container.StatePaused, container.StateRemoving:
		return true
	case container.StateCreated:
		return now.Sub(created) < startGrace
	}
	return false
}

func isAlive(ctx context.Context, docker Docker, worker container.InspectResponse) (bool, error) {
	if worker.State.Status != container.StateCreated {
		return IsAlive(worker.State.Status, time.Time{}, time.Time{}), nil
	}
	created, err := time.Parse(time.RFC3339Nano, worker.Created)
	if err != nil {
		return false, fmt.Errorf("read when worker %s was created: %w", worker.Name, err)
	}
	now, err := dockerop.Time(ctx, docker)
	if err != nil {
		return false, err
	}
	return IsAlive(worker.State.Status, created, now), nil
}
