package volumebackup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// How often a lock is tried again: one that is held, and one that was put right
// and must be free in a moment.
const (
	lockPoll   = 200 * time.Millisecond
	repairPoll = 10 * time.Millisecond
)

// LockedError means that another operation on the container is under way.
type LockedError struct {
	Holder  string // the worker's container name
	Purpose string // what it is doing
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another snapshot operation is under way (%s, in container %s)", e.Purpose, e.Holder)
}

// Unwrap gives the error its class.
func (e *LockedError) Unwrap() error { return cerrdefs.ErrConflict }

// create makes the worker's container, whose name is the lock. It waits for an
// operation that holds it, and repairs what a dead one left.
func (l *containerLauncher) create(ctx context.Context, config *container.Config, host *container.HostConfig, j job) (string, error) {
	deadline := time.NewTimer(j.wait)
	defer deadline.Stop()
	name := cmp.Or(j.name, fmt.Sprintf("%sworker-%08x", namePrefix, rand.Uint32())) //nolint:gosec // it only has to be another each time
	for {
		// Not cancelled midway: the engine would go on, and the ID be unknown.
		created, err := l.docker.ContainerCreate(context.WithoutCancel(ctx), config, host, nil, nil, name)
		if err == nil {
			return created.ID, nil
		}
		if !cerrdefs.IsConflict(err) || j.name == "" {
			return "", fmt.Errorf("create: %w", err)
		}
		holder, err := l.repair(ctx, j.name)
		if err != nil {
			return "", err
		}
		poll := lockPoll
		if holder == nil {
			poll, holder = repairPoll, &LockedError{Holder: j.name, Purpose: "cleaning up"}
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-deadline.C:
			return "", holder
		case <-time.After(poll):
		}
	}
}

// startGrace is how long a worker may exist before it runs.
const startGrace = 10 * time.Second

// repair looks at who holds a lock. A live worker is returned; after a dead one
// everything is put right, and the lock is free.
func (l *containerLauncher) repair(ctx context.Context, name string) (*LockedError, error) {
	holder, err := l.docker.ContainerInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look who holds %s: %w", name, err)
	}
	alive, err := isAlive(ctx, l.docker, holder)
	if err != nil {
		return nil, err
	}
	if alive {
		return &LockedError{Holder: name, Purpose: holder.Config.Labels[LabelPurpose]}, nil
	}
	frozen, err := FrozenBy(holder.Config.Labels)
	if err != nil {
		return nil, err
	}
	if err := l.thaw(ctx, frozen); err != nil {
		return nil, fmt.Errorf("repair after an interrupted operation: %w", err)
	}
	if holder.Config.Labels[labelKept] != "" {
		return nil, l.setAside(ctx, holder)
	}
	if err := removeWorker(ctx, l.docker, holder.ID); err != nil {
		return nil, fmt.Errorf("repair after an interrupted operation: %w", err)
	}
	return nil, nil
}

// Await waits until a worker is not at work any more, for as long as a lock would
// be waited for. It repairs nothing.
func (s *Service) Await(ctx context.Context, workerID string) error {
	deadline := time.NewTimer(s.lockTimeout)
	defer deadline.Stop()
	for {
		worker, err := s.docker.ContainerInspect(ctx, workerID)
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
			return &LockedError{Holder: strings.TrimPrefix(worker.Name, "/"), Purpose: worker.Config.Labels[LabelPurpose]}
		case <-time.After(lockPoll):
		}
	}
}

// IsAlive tells whether a worker is at work, about to be, or about to be gone.
// Both times are the engine's: a client's clock may be minutes away from it.
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
	engine, err := docker.Info(ctx)
	if err != nil {
		return false, fmt.Errorf("ask the engine for the time: %w", err)
	}
	now, err := time.Parse(time.RFC3339Nano, engine.SystemTime)
	if err != nil {
		return false, fmt.Errorf("read the engine's time: %w", err)
	}
	return IsAlive(worker.State.Status, created, now), nil
}

// setAside frees the lock that a dead worker holds whose journal says more than
// this package understands. Who wrote it finds it by its labels. Several may try
// at once: all give it the same name, and only one has to succeed.
func (l *containerLauncher) setAside(ctx context.Context, holder container.InspectResponse) error {
	const shown = 6
	err := l.docker.ContainerRename(ctx, holder.ID, strings.TrimPrefix(holder.Name, "/")+"-"+holder.ID[:shown])
	if err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) && !cerrdefs.IsInvalidArgument(err) {
		return fmt.Errorf("set an interrupted operation aside: %w", err)
	}
	return nil
}

// thaw unpauses containers, as far as they are paused.
func (l *containerLauncher) thaw(ctx context.Context, frozen []string) error {
	var failed error
	for _, id := range frozen {
		c, err := l.docker.ContainerInspect(ctx, id)
		switch {
		case cerrdefs.IsNotFound(err):
		case err != nil:
			failed = errors.Join(failed, err)
		case c.State.Paused:
			failed = errors.Join(failed, l.docker.ContainerUnpause(ctx, id))
		}
	}
	return failed
}
