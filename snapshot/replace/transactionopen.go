package replace

import (
	"context"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// open takes the lock with the journal: from here on the next command recovers after a crash. It
// starts the worker at the same time.
func (t *transaction) open(ctx context.Context) (err error) {
	if t.when, err = t.engine.capture.NewRequest(); err != nil {
		return err
	}
	safety := t.when.ID
	if t.options.NoSafety {
		safety = ""
	}
	t.journal = newJournal(t.Plan, safety)
	if t.options.StopTimeout != nil {
		t.journal.Timeout = max(0, *t.options.StopTimeout)
	}
	t.journal.Worker = t.journal.WorkerName(t.when.ID)
	missing := t.Plan.missingVolumes()
	var workers errgroup.Group
	workers.Go(func() error { return t.takeLock(ctx) })
	if len(missing) > 0 { // they are made once the journal names them, and the worker mounts them
		if err := workers.Wait(); err != nil {
			return err
		}
		if err := t.makeVolumes(ctx, missing); err != nil {
			return err
		}
	}
	workers.Go(func() (err error) {
		t.worker, err = t.openWorker(ctx)
		return err
	})
	if err := workers.Wait(); err != nil {
		return err
	}
	return t.watchOver(ctx)
}

// takeLock takes the lock with the journal on it.
func (t *transaction) takeLock(ctx context.Context) (err error) {
	options := lockOptions(t.journal)
	if t.journal.OneShot && t.journal.Running {
		options.Freezes = t.Plan.running() // its safety snapshot is taken before it stops
	}
	options.MakeStore = len(t.targets()) == 0
	t.lock, err = t.engine.lockWithJournal(ctx, t.journal, options)
	return err
}

// forget drops the record of the journal once nothing is left to do. If that fails, the store
// drops it later.
func (t *transaction) forget(ctx context.Context) {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	_ = t.lock.ForgetJournal(ctx)
}

// makeVolumes creates the volumes that are gone. If somebody made one of them meanwhile,
// everything begins again.
func (t *transaction) makeVolumes(ctx context.Context, missing []volume.CreateOptions) error {
	for _, create := range missing {
		_, err := t.engine.docker.VolumeInspect(ctx, create.Name)
		if err == nil {
			return pending.ErrMoved
		}
		if !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("inspect volume %s: %w", create.Name, err)
		}
		if slices.Contains(t.journal.Made, create.Name) {
			t.made = append(t.made, create.Name)
		}
		if _, err := t.engine.docker.VolumeCreate(context.WithoutCancel(ctx), create); err != nil {
			return fmt.Errorf("create volume %s: %w", create.Name, err)
		}
	}
	return nil
}

// running are the IDs of the containers that write to the volumes, without those that
// their users have paused: nobody who finds this interrupted may thaw them.
func (r *replacement) running() []string {
	var ids []string
	if !r.Old.State.Paused {
		ids = append(ids, r.Old.ID)
	}
	for _, o := range r.Others {
		if !o.Paused {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// openWorker starts the worker that reads and writes volumes, if there are any.
func (t *transaction) openWorker(ctx context.Context) (archives.Worker, error) {
	volumes := dockerop.Distinct(t.journal.Holds, t.journal.Volumes, t.made)
	if len(volumes)+len(t.targets()) == 0 {
		return nil, nil
	}
	return t.engine.volumes.OpenWorker(ctx, volumebackup.WorkerOptions{
		Name: t.journal.Worker, Purpose: "restore " + string(t.Plan.Snapshot.ID), Volumes: volumes,
		Task: volumebackup.Replace{MakeStore: len(t.targets()) == 0},
	}, archives.Progress(t.p))
}

// watchOver has the guard roll back should this process be killed.
func (t *transaction) watchOver(ctx context.Context) (err error) {
	t.release, err = t.engine.guard(ctx, dockerop.Watched{Replaced: t.Plan.Name})
	return dockerop.Describe(err, "start the guard")
}
