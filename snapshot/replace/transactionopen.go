package replace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// open takes the locks with the journal: from here on the next command recovers after a crash. It
// starts the worker at the same time.
func (t *transaction) open(ctx context.Context) (err error) {
	names := make([]string, len(t.members))
	for i, m := range t.members {
		names[i] = m.Name
	}
	if t.when, err = t.engine.capture.NewRequestFor(ctx, names, t.p); err != nil {
		return err
	}
	t.journal = newJournal(t.group, t.when.IDs)
	missing := t.missingVolumes()
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

// takeLock takes the locks with the journal on the last.
func (t *transaction) takeLock(ctx context.Context) (err error) {
	options := lockOptions(t.journal)
	if t.savesFirst() {
		options.Freezes = t.running()
	}
	options.MakeStore = len(t.targets()) == 0
	t.lock, err = t.engine.lockWithJournal(ctx, t.journal, options, t.p)
	return err
}

// savesFirst tells whether the safety snapshots are taken before the containers stop, because the
// engine removes one of them when it stops (--rm).
func (t *transaction) savesFirst() bool {
	return !t.live && slices.ContainsFunc(t.journal.Members, func(m pending.Member) bool { return m.OneShot })
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

// openWorker starts the worker that reads and writes volumes, if there are any.
func (t *transaction) openWorker(ctx context.Context) (archives.Worker, error) {
	volumes := dockerop.Distinct(t.journal.Holds, t.journal.Volumes, t.made)
	if len(volumes)+len(t.targets()) == 0 {
		return nil, nil
	}
	return t.engine.volumes.OpenWorker(ctx, volumebackup.WorkerOptions{
		Name: t.journal.Worker, Purpose: "restore " + strings.Join(t.journal.Snapshots(), " "), Volumes: volumes,
		Task: volumebackup.Replace{MakeStore: len(t.targets()) == 0},
	}, archives.Progress(t.p))
}

// watchOver has the guard roll back should this process be killed.
func (t *transaction) watchOver(ctx context.Context) (err error) {
	t.release, err = t.engine.guard(ctx, dockerop.Watched{Replaced: t.journal.Name()})
	return dockerop.Describe(err, "start the guard")
}
