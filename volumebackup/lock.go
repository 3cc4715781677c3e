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
	Paused  bool   // somebody has paused it
}

func (e *LockedError) Error() string {
	state := ""
	if e.Paused {
		state = ", which is paused"
	}
	return fmt.Sprintf("another snapshot operation is under way (%s, in container %s%s)", e.Purpose, e.Holder, state)
}

// Unwrap gives the error its class.
func (e *LockedError) Unwrap() error { return cerrdefs.ErrConflict }

// maxRepairs bounds how often what dead workers left is put right before the lock
// must be free.
const maxRepairs = 1000

// create makes the worker's container, whose name is the lock. It waits for an
// operation that holds it, and repairs what a dead one left.
func (l *containerLauncher) create(ctx context.Context, config *container.Config, host *container.HostConfig, j job) (string, error) {
	deadline := time.NewTimer(j.wait)
	defer deadline.Stop()
	name := cmp.Or(j.name, fmt.Sprintf("%sworker-%08x", namePrefix, rand.Uint32())) //nolint:gosec // it only has to be another each time
	told := LockedError{}
	for repairs := 0; ; {
		id, err := l.createOnce(ctx, config, host, name)
		if err == nil {
			return id, nil
		}
		if !cerrdefs.IsConflict(err) || j.name == "" {
			return "", fmt.Errorf("create: %w", err)
		}
		holder, err := l.repair(ctx, j.name)
		if err != nil {
			return "", err
		}
		poll, timeout := lockPoll, deadline.C
		if holder == nil { // a repair is not a wait: also who does not want to wait gets the lock then
			repairs++
			poll, timeout, holder = repairPoll, nil, &LockedError{Holder: j.name, Purpose: "cleaning up"}
			if repairs == maxRepairs {
				return "", holder
			}
		} else if *holder != told {
			j.tell.status("waiting: " + holder.Error())
			told = *holder
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-timeout:
			return "", holder
		case <-time.After(poll):
		}
	}
}

// createOnce makes the container. The call is not cancelled midway: the engine
// would go on, and the ID be unknown. But it ends some time after ctx has ended.
func (l *containerLauncher) createOnce(ctx context.Context, config *container.Config, host *container.HostConfig, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(removeTimeout, cancel) })
	defer stop()
	created, err := l.docker.ContainerCreate(call, config, host, nil, nil, name)
	if err == nil {
		return created.ID, nil
	}
	if isAnswer(err) {
		return "", err
	}
	return "", errors.Join(err, l.removeUnanswered(context.WithoutCancel(ctx), config.Labels[labelOperation], name))
}

// isAnswer tells an engine's refusal from a connection that broke.
func isAnswer(err error) bool {
	return cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) || cerrdefs.IsInvalidArgument(err) || cerrdefs.IsInternal(err) ||
		cerrdefs.IsPermissionDenied(err) || cerrdefs.IsUnauthorized(err)
}

// unansweredGrace is how long the container of a create call that was not answered
// is looked for.
const unansweredGrace = 2 * time.Second

// removeUnanswered removes what a create call has made, or is about to make,
// although nobody was told.
func (l *containerLauncher) removeUnanswered(ctx context.Context, operation, name string) error {
	ctx, cancel := context.WithTimeout(ctx, unansweredGrace)
	defer cancel()
	for {
		c, err := l.docker.ContainerInspect(ctx, name)
		if err == nil {
			if c.Config.Labels[labelOperation] != operation {
				return nil // somebody else's
			}
			return removeWorker(ctx, l.docker, c.ID)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lockPoll):
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
		return nil, fmt.Errorf("inspect worker %s: %w", name, err)
	}
	is, err := l.images.isWorker(ctx, container.Summary{Names: []string{holder.Name}, ImageID: holder.Image, Labels: holder.Config.Labels})
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, fmt.Errorf("container %s, which is none of ours, has the name that locks the container: rename or remove it", name)
	}
	alive, err := isAlive(ctx, l.docker, holder)
	if err != nil {
		return nil, err
	}
	if alive {
		return lockedBy(holder), nil
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

// lockedBy is the error that a worker at work stands for.
func lockedBy(worker container.InspectResponse) *LockedError {
	return &LockedError{
		Holder: strings.TrimPrefix(worker.Name, "/"), Purpose: worker.Config.Labels[LabelPurpose], Paused: worker.State.Status == container.StatePaused,
	}
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
			return lockedBy(worker)
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
			failed = errors.Join(failed, l.unpause(ctx, id))
		}
	}
	return failed
}

// unpause unpauses a container. That somebody else has done so, or removed it
// meanwhile, is as good.
func (l *containerLauncher) unpause(ctx context.Context, id string) error {
	failed := l.docker.ContainerUnpause(ctx, id)
	if failed == nil {
		return nil
	}
	c, err := l.docker.ContainerInspect(ctx, id)
	if cerrdefs.IsNotFound(err) || err == nil && !c.State.Paused {
		return nil
	}
	return failed
}
