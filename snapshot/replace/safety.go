package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// stopSafely stops the containers and their sharers, and takes the safety snapshots. Most of the
// volumes is read before the stop, but the snapshots hold what is there after it, so that
// nothing is lost that was written in between.
func (t *transaction) stopSafely(ctx context.Context) error {
	if t.promoted() != nil {
		return t.takeCopy(ctx)
	}
	return t.saveAndStop(ctx)
}

// saveAndStop does it for the containers that are replaced.
func (t *transaction) saveAndStop(ctx context.Context) error {
	quiesce := func(ctx context.Context) error {
		t.watch.Lap("safety")
		defer t.watch.Lap("stop")
		t.stage = quiescing
		err := t.stopAll(ctx)
		t.stopping = err != nil && !errors.Is(err, context.Cause(ctx)) // the engine goes on with a stop whose answer was lost
		return err
	}
	if t.noSafety {
		return quiesce(ctx)
	}
	t.when.Begin = t.lendWorker()
	if t.savesFirst() {
		if err := t.takeSafety(ctx); err != nil {
			return err
		}
		return quiesce(ctx)
	}
	t.when.Quiesce, t.when.Freezes = quiesce, t.live
	return t.takeSafety(ctx)
}

// lendWorker opens backups: the first in the worker that is there, which can do one at a time, and the
// others in workers of their own.
func (t *transaction) lendWorker() func(context.Context, volumebackup.BackupOptions, volumebackup.Progress) (archives.Backup, error) {
	lent := false
	return func(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (archives.Backup, error) {
		if lent || t.worker == nil || t.isCopy(o.Container) { // the transaction's worker does not mount what the copy does
			o.Container, o.Freezes = "", nil // the transaction's lock has them
			return t.engine.volumes.Begin(ctx, o, p)
		}
		lent = true
		return t.worker.Begin(ctx, o, p)
	}
}

// takeSafety takes the safety snapshots, all of one moment.
func (t *transaction) takeSafety(ctx context.Context) (err error) {
	defer t.watch.Lap("safety")
	defer func() { err = errors.Join(err, t.dropStandIns(ctx)) }()
	request, ids := t.when, t.when.IDs
	request.IDs = nil
	var saved []*member
	var all []capture.Options
	for i, m := range t.members {
		if !m.saves(t.group) {
			continue // there is nothing to lose
		}
		o, err := t.saveOptions(ctx, m)
		if err != nil {
			return err
		}
		saved, all, request.IDs = append(saved, m), append(all, o), append(request.IDs, ids[i])
	}
	if len(saved) == 0 {
		return nil
	}
	created, err := t.engine.capture.TakeWithin(ctx, request, all, t.p)
	if err != nil {
		return fmt.Errorf("safety snapshot: %w", err)
	}
	for i, m := range saved {
		m.safety = &created[i].Snapshot
	}
	return nil
}

// saveOptions say what the safety snapshot of a member is taken of. If its container is gone, another
// one stands in for it, which mounts what it left.
func (t *transaction) saveOptions(ctx context.Context, m *member) (capture.Options, error) {
	scope, err := t.undoScope(ctx, m)
	if err != nil {
		return capture.Options{}, err
	}
	o := capture.Options{
		Trigger: labels.TriggerPreRestore, Description: "before restoring " + m.whatGoesBack(), Restores: m.Snapshot.ID, Scope: scope,
		Exclude: t.exclusions(), Binds: capture.BindChoice{Keys: t.writtenBinds()}, Limits: capture.Limits{None: true},
	}
	if m.Old != nil {
		o.Container, o.RootChecked = m.Old.ID, !m.options.keeps()
		return o, nil
	}
	config := m.Spec.Config
	if m.promoted != nil { // its snapshot is not there yet
		config.Image = m.promoted.container.Image
	}
	standIn, err := t.engine.docker.CreateContainer(ctx, &config, m.Spec.StandIn(t.gone()), nil, m.Name)
	if err != nil {
		return o, fmt.Errorf("create a container for the volumes that are left: %w", err)
	}
	t.standIns = append(t.standIns, standIn.ID)
	o.Container = standIn.ID
	o.Volumes.Only = slices.DeleteFunc(m.notMounted(t.group), labels.IsPathKey)
	o.Volumes.None = len(o.Volumes.Only) == 0
	return o, nil
}

// dropStandIns removes the containers that stood in for those that are gone.
func (t *transaction) dropStandIns(ctx context.Context) error {
	var failed error
	for _, id := range t.standIns {
		failed = errors.Join(failed, t.engine.docker.Discard(context.WithoutCancel(ctx), id))
	}
	t.standIns = nil
	return failed
}
