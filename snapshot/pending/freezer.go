package pending

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// FreezersOf returns the workers, live or dead ones, whose journals say that they freeze one of the
// containers.
func FreezersOf(workers []Worker, containers []string, alive bool) []Worker {
	return slices.DeleteFunc(slices.Clone(workers), func(w Worker) bool {
		frozen, err := volumebackup.FrozenBy(w.Labels)
		return w.Alive != alive || err != nil || !slices.ContainsFunc(frozen, func(id string) bool { return slices.Contains(containers, id) })
	})
}

// StartedBefore returns the workers that started before the one with the name own, the earliest
// first.
func (f *Finder) StartedBefore(ctx context.Context, own string, workers []Worker) ([]Worker, error) {
	if len(workers) == 0 {
		return nil, nil
	}
	mine, err := f.startOf(ctx, own)
	if err != nil {
		return nil, err
	}
	starts := map[string]start{}
	var before []Worker
	for _, w := range workers {
		other, err := f.startOf(ctx, w.ID) // waits until the engine has finished a start that is under way
		if err != nil {
			return nil, err
		}
		if other.id != "" && other.compare(mine) < 0 {
			starts[w.ID] = other
			before = append(before, w)
		}
	}
	slices.SortFunc(before, func(a, b Worker) int { return starts[a.ID].compare(starts[b.ID]) })
	return before, nil
}

// start is when a worker started. It is empty if the worker does not run.
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

func (f *Finder) startOf(ctx context.Context, worker string) (start, error) {
	c, err := f.docker.InspectIfThere(ctx, worker)
	if err != nil || c == nil || !c.State.Running {
		return start{}, err
	}
	return start{at: dockerop.TimeOf(c.State.StartedAt), id: c.ID}, nil
}

// Interrupted returns the dead workers that have left one of the containers frozen. A container
// that a live worker freezes, too, does not count: the dead one's operation is over. Workers with
// the journal of a restore in place are left out, because recovering that takes more than a thaw.
func Interrupted(workers []Worker, containers []string) []Worker {
	var dead []Worker
	for _, id := range containers {
		if len(FreezersOf(workers, []string{id}, true)) > 0 {
			continue
		}
		for _, w := range FreezersOf(workers, []string{id}, false) {
			known := slices.ContainsFunc(dead, func(d Worker) bool { return d.ID == w.ID })
			if w.Labels[LabelJournal] == "" && !known {
				dead = append(dead, w)
			}
		}
	}
	return dead
}
