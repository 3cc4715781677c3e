package snapshot

import (
	"context"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
)

// takeTimeout bounds one snapshot, so that one that hangs does not end the watching of its container.
const takeTimeout = time.Hour

// take captures a container, while the watching goes on.
func (w *watcher) take(ctx context.Context, d watch.Decision) {
	w.working.Go(func() {
		taking, stop := context.WithTimeout(ctx, takeTimeout)
		defer stop()
		r := watch.Report{What: watch.Took, Container: d.Name, ContainerID: d.ID, Trigger: string(d.Trigger), Reason: d.Reason}
		created, err := w.engine.Create(taking, capture.Options{Container: d.ID, Trigger: d.Trigger, Description: d.Reason}, w.warnings(d))
		switch {
		case err == nil:
			r.Snapshot, r.FrozenMS, r.Incomplete = string(created.ID), created.Frozen.Milliseconds(), created.Incomplete
			w.tell(r)
			w.limit(taking, d)
			if created.SweepDue {
				w.engine.Sweep(taking, w.warnings(d))
			}
		case ctx.Err() == nil && !cerrdefs.IsNotFound(err): // or the container was removed
			r.What, r.Error = watch.Failed, err.Error()
			w.tell(r)
		}
		select {
		case w.done <- finished{d.ID, err}:
		case <-ctx.Done():
		}
	})
}

// warnings reports the warnings of an operation, and nothing else.
func (w *watcher) warnings(d watch.Decision) plan.Progress {
	return func(e plan.Event) {
		if e.Level == plan.LevelWarning {
			w.tell(watch.Report{What: watch.Warning, Container: d.Name, ContainerID: d.ID, Error: e.Text})
		}
	}
}
