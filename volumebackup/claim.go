package volumebackup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// How often a lock is tried again: one that is held, and one whose dead worker was cleared away and that must be free in
// a moment.
const (
	lockPoll     = 200 * time.Millisecond
	takeoverPoll = 10 * time.Millisecond
)

// maxTakeovers bounds how many dead workers are cleared away before the lock must be free.
const maxTakeovers = 1000

// create makes the worker's container, whose name is the lock. It waits for an operation that holds the lock, and takes
// the lock over from a dead one.
func (l *containerLauncher) create(ctx context.Context, config *container.Config, host *container.HostConfig, j job) (string, error) {
	deadline := time.NewTimer(j.wait)
	defer deadline.Stop()
	name := cmp.Or(j.name, fmt.Sprintf("%sworker-%08x", namePrefix, rand.Uint32())) //nolint:gosec // it only has to be another each time
	told := LockedError{}                                                           // what the user was told to wait for
	for takeovers := 0; ; {
		id, err := l.createOnce(ctx, config, host, name)
		if err == nil {
			return id, nil
		}
		if !cerrdefs.IsConflict(err) || j.name == "" || j.once {
			return "", fmt.Errorf("create: %w", err)
		}
		holder, err := l.takeOver(ctx, j.name)
		if err != nil {
			return "", err
		}
		poll, timeout := lockPoll, deadline.C
		if holder == nil { // clearing up is not waiting: also who does not want to wait gets the lock then
			takeovers++
			poll, timeout, holder = takeoverPoll, nil, &LockedError{Holder: j.name, Purpose: "cleaning up"}
			if takeovers == maxTakeovers {
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

// createOnce makes the container. When ctx ends it still gives the call some time: the engine would go on without us,
// and we would not know the ID.
func (l *containerLauncher) createOnce(ctx context.Context, config *container.Config, host *container.HostConfig, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	call, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(removeTimeout, cancel) })
	defer stop()
	created, err := l.docker.ContainerCreate(call, config, host, nil, nil, name)
	err = dockerop.AsFull(err)
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

// unansweredGrace is how long to look for the container of a create call that was not answered.
const unansweredGrace = 2 * time.Second

// removeUnanswered removes the container of a create call whose answer was lost. The engine may make it a moment
// later. The label tells it from a container that somebody else has made under the name.
//
// [dockerop.Engine.CreateContainer] looks only once, and also after refusals that [isAnswer] believes. What it may leave
// is found by its name or labels by whoever sweeps, rolls back or recovers. A worker that is left would lock a container:
// so this looks for as long as the engine may take, and only if it is worth that time.
func (l *containerLauncher) removeUnanswered(ctx context.Context, operation, name string) error {
	ctx, cancel := context.WithTimeout(ctx, unansweredGrace)
	defer cancel()
	for {
		c, _, err := l.docker.ContainerInspectWithRaw(ctx, name, false)
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
