package replace

import (
	"context"
	"errors"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// stopSafely stops the container and its sharers, and takes the safety snapshot. Most of the
// volumes is read before the stop, but the snapshot holds what is there after it, so that
// nothing is lost that was written in between.
func (t *transaction) stopSafely(ctx context.Context) error {
	quiesce := func(ctx context.Context) error {
		t.watch.Lap("safety")
		defer t.watch.Lap("stop")
		t.stage = quiescing
		err := t.engine.stopAll(ctx, t.journal, t.options.StopTimeout, t.p)
		t.stopping = err != nil && !errors.Is(err, context.Cause(ctx)) // the engine goes on with a stop whose answer was lost
		return err
	}
	if t.options.NoSafety {
		return quiesce(ctx)
	}
	t.when.Begin = func(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (archives.Backup, error) {
		return t.worker.Begin(ctx, o, p)
	}
	if t.journal.OneShot { // the engine removes it when it stops
		if err := t.takeSafety(ctx); err != nil {
			return err
		}
		return quiesce(ctx)
	}
	t.when.Quiesce = quiesce
	return t.takeSafety(ctx)
}

func (t *transaction) takeSafety(ctx context.Context) (err error) {
	defer t.watch.Lap("safety")
	o := capture.Options{
		Trigger: labels.TriggerPreRestore, Description: "before restoring " + string(t.Plan.Snapshot.ID),
	}
	if t.Plan.Old != nil {
		o.Container = t.Plan.Old.ID
	} else {
		if len(t.journal.Volumes) == 0 {
			return nil // there is nothing to lose
		}
		standIn, err := t.engine.docker.CreateContainer(ctx, &t.Plan.Spec.Config, t.Plan.Spec.WithoutCopy(), nil, t.Plan.Name)
		if err != nil {
			return fmt.Errorf("create a container for the volumes that are left: %w", err)
		}
		o.Container, o.Volumes.Only = standIn.ID, t.journal.Volumes
		defer func() { err = errors.Join(err, t.engine.docker.Discard(context.WithoutCancel(ctx), standIn.ID)) }()
	}
	created, err := t.engine.capture.TakeWithin(ctx, t.when, o, t.p)
	if err != nil {
		return fmt.Errorf("safety snapshot: %w", err)
	}
	t.safety = &created.Snapshot
	return nil
}
