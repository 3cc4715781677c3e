package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// waitTurn checks, once the container's lock is held, that it is still what it was, that
// no restore in place has to do with it or its volumes, and that nobody died who had
// frozen its writers. Then it waits for the operations that freeze the same containers
// and whose workers started earlier: two at once would thaw each other's.
//
// Nobody is missed. A worker is in the engine's list before it starts, and the list is
// asked for afterwards: of two, the one that started later finds the other.
func (r *reading) waitTurn(ctx context.Context) (waited bool, err error) {
	e, c := r.engine, r.from.container
	workers, err := e.checkUnmoved(ctx, c, r.from.storage.aliases(r.names()), r.p)
	if err != nil {
		return false, err
	}
	if len(workers) == 0 {
		return false, nil
	}
	if err := e.recoverWriters(ctx, workers, r.before.paused); err != nil {
		return false, err
	}
	ahead, err := e.startedBefore(ctx, volumebackup.LockName(c.ID), freezersOf(workers, r.before.running, true))
	for _, w := range ahead {
		r.p.Status("freeze", "waiting for another operation that freezes the same containers: "+w.Labels[volumebackup.LabelPurpose])
		if err := e.volumes.Await(ctx, w.ID); err != nil {
			return false, err
		}
	}
	return len(ahead) > 0, err
}

// freezersOf are the live, or the dead, workers whose journals say that they freeze one
// of the containers.
func freezersOf(workers []worker, containers []string, alive bool) []worker {
	return slices.DeleteFunc(slices.Clone(workers), func(w worker) bool {
		frozen, err := volumebackup.FrozenBy(w.Labels)
		return w.alive != alive || err != nil || !slices.ContainsFunc(frozen, func(id string) bool { return slices.Contains(containers, id) })
	})
}

// recoverWriters thaws those of the containers that an interrupted operation has left
// frozen, and says with [errMoved] that everything has to be looked at again. What a
// live worker freezes as well is none of a dead one's: that has ended this moment.
func (e *Engine) recoverWriters(ctx context.Context, workers []worker, containers []string) error {
	var recovered bool
	var failed error
	for _, id := range containers {
		if len(freezersOf(workers, []string{id}, true)) > 0 {
			continue
		}
		for _, w := range freezersOf(workers, []string{id}, false) {
			if w.Labels[labelJournal] != "" {
				continue // it is pending, and more than this is to be done
			}
			recovered = true
			_, err := e.recoverFrozen(ctx, w, concern{words: []string{id}})
			failed = errors.Join(failed, err)
		}
	}
	if recovered && failed == nil {
		return errMoved
	}
	return failed
}

// startedBefore are the workers that started before the one with this name, in that order.
func (e *Engine) startedBefore(ctx context.Context, own string, workers []worker) ([]worker, error) {
	if len(workers) == 0 {
		return nil, nil
	}
	mine, err := e.startOf(ctx, own)
	if err != nil {
		return nil, err
	}
	starts := map[string]start{}
	var before []worker
	for _, w := range workers {
		other, err := e.startOf(ctx, w.ID) // the engine answers when a start that is under way is over
		if err != nil {
			return nil, err
		}
		if other.id != "" && other.compare(mine) < 0 {
			starts[w.ID] = other
			before = append(before, w)
		}
	}
	slices.SortFunc(before, func(a, b worker) int { return starts[a.ID].compare(starts[b.ID]) })
	return before, nil
}

// start is when a worker started; empty if it has not.
type start struct {
	at time.Time
	id string
}

func (s start) compare(other start) int {
	if order := s.at.Compare(other.at); order != 0 {
		return order
	}
	return strings.Compare(s.id, other.id)
}

func (e *Engine) startOf(ctx context.Context, worker string) (start, error) {
	c, err := e.docker.InspectIfThere(ctx, worker)
	if err != nil || c == nil || !c.State.Running {
		return start{}, err
	}
	return start{at: dockerop.TimeOf(c.State.StartedAt), id: c.ID}, nil
}
