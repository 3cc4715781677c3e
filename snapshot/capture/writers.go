package capture

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// writers are the containers that can write to what is captured.
type writers struct {
	running []string // IDs of those to freeze: the target, and every other that mounts one of the volumes to write
	paused  []string // IDs of those that the user has paused
	idle    bool     // no container, running or paused, can write: a paused one may hold dirty mapped pages
}

// writers finds the containers that can write now. Those in leave were paused by their users, and
// are not frozen. It fails with [pending.ErrMoved] if the target was found paused and runs now.
func (cr *Capturer) writers(ctx context.Context, from Source, volumes []string, pause Pause, leave []string) (writers, error) {
	var w writers
	target := from.Container.ID
	if pause != PauseNone {
		switch dockerop.ContainerState(from.Container.State) {
		case labels.StateRunning:
			w.running = append(w.running, target)
		case labels.StatePaused:
			w.paused = append(w.paused, target)
		}
	}
	if pause != PauseAll || len(volumes) == 0 {
		return w, nil
	}
	users, err := from.storage.UsersAndWorkers(ctx, cr.docker, volumes)
	if err != nil {
		return w, err
	}
	users, held, err := cr.pending.SplitWorkers(ctx, users)
	if err != nil {
		return w, err
	}
	w.idle = len(w.running) == 0
	for _, c := range users {
		if c.ID == target && c.State == container.StateRunning && slices.Contains(w.paused, target) {
			return w, pending.ErrMoved
		}
		if !from.storage.Writes(c, volumes) {
			continue
		}
		w.idle = false
		runs := c.State == container.StateRunning || slices.Contains(held, c.ID)
		switch {
		case runs && !slices.Contains(leave, c.ID):
			w.running = append(w.running, c.ID)
		case c.State == container.StatePaused:
			w.paused = append(w.paused, c.ID)
		}
	}
	w.running, w.paused = dockerop.Distinct(w.running), dockerop.Distinct(w.paused)
	return w, nil
}

// and returns these writers and others.
func (w writers) and(others writers) writers {
	return writers{
		running: dockerop.Distinct(w.running, others.running), paused: dockerop.Distinct(w.paused, others.paused),
		idle: w.idle && others.idle,
	}
}

// joined tells whether there is a writer that was not there before.
func (w writers) joined(before writers) bool {
	isNew := func(id string) bool { return !slices.Contains(before.running, id) }
	return slices.ContainsFunc(w.running, isNew) || before.idle && !w.idle
}

// all returns the containers that must not run while the volumes are read.
func (w writers) all() []string { return dockerop.Distinct(w.running, w.paused) }
