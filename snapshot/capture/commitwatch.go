package capture

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// commitWatch watches a container that the engine itself pauses for its commit.
type commitWatch struct {
	part    *part
	comment string
	state   labels.State
	watch   *dockerop.ThawWatch // nil: the container does not stand still for the commit, or did so before
}

func (a *part) watchCommit(ctx context.Context, o container.CommitOptions) *commitWatch {
	w := &commitWatch{part: a, comment: o.Comment, state: dockerop.ContainerState(a.from.Container.State)}
	if o.Pause && a.Quiesce == nil && (w.state == labels.StateRunning || w.state == labels.StatePaused) {
		w.watch = a.engine.docker.WatchThaws(ctx)
	}
	return w
}

// disturbed returns what is wrong with the committed image: [errThawed] if the container ran meanwhile,
// [pending.ErrMoved] if it was paused before and ran.
func (w *commitWatch) disturbed(ctx context.Context) error {
	if w.watch == nil {
		return nil
	}
	events, err := w.watch.UntilCommit(ctx, w.comment)
	id := w.part.from.Container.ID
	ran := slices.Contains(events.Ran, id)
	switch {
	case err != nil:
		return err
	case w.state == labels.StatePaused && (ran || slices.Contains(events.Paused, id)):
		return pending.ErrMoved
	case ran:
		return errThawed
	}
	return nil
}

// measure adds to the result how long the engine paused the container for the commit.
func (w *commitWatch) measure(ctx context.Context) {
	if w.watch != nil && w.state == labels.StateRunning {
		w.part.stood.total += w.watch.Paused(ctx, w.part.from.Container.ID)
	}
}

func (w *commitWatch) stop() {
	if w.watch != nil {
		w.watch.Stop()
	}
}
