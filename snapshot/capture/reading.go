package capture

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// volumeCapture is one attempt to archive volumes.
type volumeCapture struct {
	*taking
	volumes []volumebackup.Volume
	pause   Pause
	options container.CommitOptions
	last    bool // the last attempt: a writer that joins now is only a warning
	backup  archives.Backup
	before  writers  // when the reading began: whoever is frozen is in the journal
	leave   []string // containers that their users paused: they are not thawed
	stuck   bool     // containers could not be thawed
}

func (r *volumeCapture) names() []string {
	names := make([]string, len(r.volumes))
	for i, v := range r.volumes {
		names[i] = v.Name
	}
	return names
}

// look finds the writers of this moment.
func (r *volumeCapture) look(ctx context.Context) (writers, error) {
	return r.engine.writers(ctx, r.from, r.names(), r.pause, r.leave)
}

// run reads everything while the writers run, freezes them, and reads what changed since. Nothing
// is made durable before they run again.
func (r *volumeCapture) run(ctx context.Context, u *dockerop.Rollback) (imageID string, err error) {
	if r.before, err = r.look(ctx); err != nil {
		return "", err
	}
	r.p.Status("volumes", "reading volumes")
	begin := r.Begin
	if begin == nil {
		begin = r.engine.volumes.Begin
	}
	r.backup, err = begin(ctx, volumebackup.BackupOptions{
		Container: r.from.Container.ID, Snapshot: string(r.ID), Freezes: r.before.running, Volumes: r.volumes,
	}, archives.Progress(r.p))
	if err != nil {
		return "", err
	}
	defer func() {
		switch {
		case err == nil:
			r.ending.Go(r.backup.Close)
		case r.stuck && r.Begin == nil:
			_ = r.backup.Abandon() // the journal stays, for who thaws them later
		default:
			_ = r.backup.Close() // the error says more
		}
	}()
	if err := r.readLive(ctx); err != nil {
		return "", err
	}
	return r.finish(ctx, u)
}

// readLive is the first pass. Concurrently it checks that nothing changed before the
// lock was taken, and waits for those who freeze the same containers.
func (r *volumeCapture) readLive(ctx context.Context) error {
	waited := false
	calls, callsCtx := errgroup.WithContext(ctx)
	if r.Begin == nil { // or the operation that this is a part of has checked
		calls.Go(func() (err error) {
			waited, err = r.waitTurn(callsCtx)
			return err
		})
	}
	calls.Go(func() error { return r.passLive(callsCtx) })
	if err := calls.Wait(); err != nil || !waited {
		return err
	}
	return r.passLive(ctx) // much may have changed
}

func (r *volumeCapture) passLive(ctx context.Context) error {
	if r.before.idle || len(r.volumes) == 0 {
		return nil
	}
	_, err := r.backup.Pass(ctx, volumebackup.Live)
	return err
}

// finish reads what is left and stores it all.
func (r *volumeCapture) finish(ctx context.Context, u *dockerop.Rollback) (string, error) {
	stored := false // set before Publish: a lost answer may hide a success
	u.Add(func(ctx context.Context) error {
		if !stored {
			return nil
		}
		_, err := r.engine.volumes.Remove(ctx, volumebackup.RemoveOptions{Claims: []volumebackup.Claim{archives.ClaimOf(*r.record)}})
		return err
	})
	made, err := r.readUndisturbed(ctx)
	if made != "" {
		u.Add(func(ctx context.Context) error { return r.engine.docker.RemoveImage(ctx, made) })
	}
	if err != nil {
		return "", err
	}
	made, err = r.limitLayers(ctx, made, u) // before there are archives that have no image
	if err != nil || len(r.volumes) == 0 {
		return made, err
	}
	r.p.Status("store", "writing to the store")
	stored = true
	archives, err := r.backup.Publish(ctx, volumebackup.Origin{
		Engine: r.from.engine.ID, ImageStore: r.from.engine.ImageStore, Container: r.record.Container.ID, ContainerName: r.record.Container.Name,
	})
	for _, archive := range archives {
		r.lost = r.lost || archive.Skipped > 0
	}
	if err != nil {
		return "", err
	}
	r.sweepDue = r.backup.SweepDue()
	return made, nil
}

// readStill reads the volumes and commits the container, once nobody writes.
func (r *volumeCapture) readStill(ctx context.Context, who writers) (imageID string, err error) {
	mode := volumebackup.Frozen
	if who.idle || r.Quiesce != nil {
		mode = volumebackup.Idle
	}
	var archives []volumebackup.Archive
	if len(r.volumes) > 0 {
		if archives, err = r.backup.Pass(ctx, mode); err != nil {
			return "", err
		}
	}
	if len(archives) != len(r.volumes) {
		return "", fmt.Errorf("the worker archived %d of %d volumes", len(archives), len(r.volumes))
	}
	recordArchives(r.record.Mounts, archives)
	if len(archives) > 0 {
		r.record.Store, r.record.StoreID = r.backup.Store()
	}
	own, err := r.seal()
	if err != nil {
		return "", err
	}
	r.options.Config = commitConfig(r.from, own)
	return r.commitAlone(ctx, who)
}

// commitAlone commits the container, and concurrently checks that no new writer joined during
// the last pass. It returns either an image or an error.
func (r *volumeCapture) commitAlone(ctx context.Context, who writers) (imageID string, err error) {
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() error { return r.checkAlone(callsCtx, who) })
	calls.Go(func() (err error) {
		imageID, err = r.engine.docker.Commit(callsCtx, r.from.Container.ID, r.options)
		return err
	})
	err = calls.Wait()
	if err == nil || imageID == "" {
		return imageID, err
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	return "", errors.Join(err, r.engine.docker.RemoveImage(after, imageID))
}

// checkAlone finds out whether a container that is not frozen began to write during the last
// pass.
func (r *volumeCapture) checkAlone(ctx context.Context, who writers) error {
	now, err := r.look(ctx)
	if err != nil || !now.joined(who) {
		return err
	}
	if !r.last {
		return errJoined
	}
	r.lost = true
	r.p.Warn("volumes", errJoined.Error()+" while they were read: what is captured may be torn")
	return nil
}
