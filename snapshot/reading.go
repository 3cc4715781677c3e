package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// reading is one attempt to archive volumes.
type reading struct {
	*archiving
	volumes []volumebackup.Volume
	pause   Pause
	options container.CommitOptions
	last    bool // who joins now is not waited for
	backup  VolumeBackup
}

func (r *reading) names() []string {
	names := make([]string, len(r.volumes))
	for i, v := range r.volumes {
		names[i] = v.Name
	}
	return names
}

// look finds out who can write now.
func (r *reading) look(ctx context.Context) (writers, error) {
	return r.engine.writers(ctx, r.from, r.names(), r.pause)
}

// run reads everything while the writers run, then what changed since while they
// are frozen. Nothing durable is waited for until they run again.
func (r *reading) run(ctx context.Context, u *undo) (imageID string, err error) {
	before, err := r.look(ctx)
	if err != nil {
		return "", err
	}
	r.p.status("volumes", "reading volumes")
	begin := r.begin
	if begin == nil {
		begin = r.engine.volumes.Begin
	}
	r.backup, err = begin(ctx, volumebackup.BackupOptions{
		Container: r.from.container.ID, Snapshot: string(r.id), Freezes: before.running, Volumes: r.volumes,
	}, volumeEvents(r.p))
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = r.backup.Close() // the error says more
			return
		}
		r.ending.Go(r.backup.Close)
	}()
	if err := r.readLive(ctx, before); err != nil {
		return "", err
	}
	now, err := r.look(ctx) // reading may have taken minutes
	if err != nil {
		return "", err
	}
	if now.joined(before) && !r.last { // whoever is frozen has to be in the journal
		return "", errJoined
	}
	return r.finish(ctx, now, u)
}

// readLive is the first pass. Beside it is looked whether, before the lock was
// taken, something happened to what was observed.
func (r *reading) readLive(ctx context.Context, who writers) error {
	calls, callsCtx := errgroup.WithContext(ctx)
	if r.begin == nil { // or the operation has looked that this is a part of
		calls.Go(func() error { return r.engine.checkUnmoved(callsCtx, r.from.container, r.names(), r.p) })
	}
	if !who.idle {
		calls.Go(func() error {
			_, err := r.backup.Pass(callsCtx, volumebackup.Live)
			return err
		})
	}
	return calls.Wait()
}

// finish reads what is left and stores it all.
func (r *reading) finish(ctx context.Context, who writers, u *undo) (string, error) {
	stored := false // perhaps: without an answer the worker may still have got there
	u.add(func(ctx context.Context) error {
		if !stored {
			return nil
		}
		_, err := r.engine.volumes.Remove(ctx, volumebackup.RemoveOptions{Claim: claimOf(*r.record)})
		return err
	})
	made, err := r.readFrozen(ctx, who)
	if made != "" {
		u.add(func(ctx context.Context) error { return r.engine.removeImage(ctx, made) })
	}
	if err != nil {
		return "", err
	}
	made, err = r.limitLayers(ctx, made, u) // before there are archives that have no image
	if err != nil {
		return "", err
	}
	r.p.status("store", "writing to the store")
	stored = true
	archives, err := r.backup.Publish(ctx, volumebackup.Origin{
		Engine: r.from.engine.id, ImageStore: r.from.engine.imageStore, Container: r.record.Container.ID, ContainerName: r.record.Container.Name,
	})
	for _, archive := range archives {
		r.lost = r.lost || archive.Skipped > 0
	}
	if err != nil {
		return "", err
	}
	return made, nil
}

// readFrozen is the part that ends with the image committed and all thawed.
func (r *reading) readFrozen(ctx context.Context, who writers) (imageID string, err error) {
	mode := volumebackup.Frozen
	if who.idle || r.settle != nil {
		mode = volumebackup.Idle
	}
	resume, err := r.standStill(ctx, who.running)
	defer func() {
		if resumeErr := resume(ctx); err == nil {
			err = resumeErr
		}
	}()
	if err != nil {
		return "", err
	}
	archives, err := r.backup.Pass(ctx, mode)
	if err != nil {
		return "", err
	}
	if len(archives) != len(r.volumes) {
		return "", fmt.Errorf("the worker archived %d of %d volumes", len(archives), len(r.volumes))
	}
	recordArchives(r.record.Mounts, archives)
	own, err := labels.Encode(*r.record)
	if err != nil {
		return "", fmt.Errorf("describe container %s: %w", r.record.Container.Name, err)
	}
	r.options.Config = commitConfig(r.from, own)
	return r.commitAlone(ctx, who)
}

// commitAlone commits the container, and looks meanwhile whether it was alone
// while the last pass was reading. Without an image there is an error.
func (r *reading) commitAlone(ctx context.Context, who writers) (imageID string, err error) {
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() error { return r.checkAlone(callsCtx, who) })
	calls.Go(func() (err error) {
		imageID, err = r.engine.commit(callsCtx, r.from.container.ID, r.options)
		return err
	})
	err = calls.Wait()
	if err == nil || imageID == "" {
		return imageID, err
	}
	after, cancel := cleanup(ctx)
	defer cancel()
	return "", errors.Join(err, r.engine.removeImage(after, imageID))
}

// checkAlone looks whether somebody who is not frozen began to write while the
// last pass was reading.
func (r *reading) checkAlone(ctx context.Context, who writers) error {
	now, err := r.look(ctx)
	if err != nil || !now.joined(who) {
		return err
	}
	if !r.last {
		return errJoined
	}
	r.lost = true
	r.p.warn("volumes", errJoined.Error()+" while they were read: what is captured may be torn")
	return nil
}
