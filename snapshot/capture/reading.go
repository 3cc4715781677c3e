package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// attempt is one attempt to archive the volumes and to commit the containers.
type attempt struct {
	*taking
	last   bool          // a writer that joins now is only a warning
	lock   archives.Lock // of several containers; nil: the backup of the only one is the lock
	before writers       // when the reading began: whoever is frozen is in the journal
	leave  []string      // containers that their users paused: they are not thawed
	stuck  bool          // containers could not be thawed
	read   time.Time     // when the last pass ended
}

// containers are the IDs of those that a snapshot is taken of.
func (a *taking) containers() []string {
	ids := make([]string, len(a.parts))
	for i, one := range a.parts {
		ids[i] = one.from.Container.ID
	}
	return ids
}

// look finds the writers of this moment.
func (r *attempt) look(ctx context.Context) (writers, error) {
	all := writers{idle: true}
	for _, one := range r.parts {
		w, err := r.engine.writers(ctx, one.from, one.names(), one.from.options.pause(), r.leave)
		if err != nil {
			return writers{}, err
		}
		all = all.and(w)
	}
	return all, nil
}

// run reads everything while the writers run, freezes them, and reads what changed since. Nothing
// is made durable before they run again.
func (r *attempt) run(ctx context.Context, u *dockerop.Rollback) (err error) {
	if r.before, err = r.look(ctx); err != nil {
		return err
	}
	r.p.Status("volumes", "reading volumes")
	defer func() { r.end(err) }()
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.checkWanted(ctx); err != nil {
		return err
	}
	for _, one := range r.parts {
		if err := one.attach(ctx); err != nil {
			return err
		}
	}
	if err := r.readLive(ctx); err != nil {
		return err
	}
	return r.finish(ctx, u)
}

// begin takes the lock, and opens a backup for each snapshot that stores something. One container is
// locked by the worker that reads its volumes. Several are locked before any volume is mounted: who
// waits for a lock keeps nobody waiting who waits for the readers of a volume.
func (r *attempt) begin(ctx context.Context) (err error) {
	begin, alone := r.Begin, len(r.parts) == 1
	if begin == nil {
		begin = r.engine.volumes.Begin
	}
	if r.Begin == nil && !alone {
		r.lock, err = r.engine.volumes.TakeLock(ctx, volumebackup.LockOptions{
			Containers: r.containers(), Purpose: "create " + string(r.IDs[0]), Freezes: r.before.running, MakeStore: true,
		}, archives.Progress(r.p))
		if err != nil {
			return err
		}
	}
	for _, one := range r.parts {
		if !one.stores() && !alone {
			continue
		}
		o := volumebackup.BackupOptions{Container: one.from.Container.ID, Snapshot: string(one.record.ID), Freezes: r.before.running, Hooks: one.hookCommands(), Volumes: one.volumes}
		o.Full, o.CheckFraction, o.Automatic = one.from.options.Full, one.from.options.CheckFraction, one.record.Trigger != labels.TriggerManual
		if r.lock != nil {
			o.Container, o.Freezes = "", nil // the lock has them
		}
		if one.backup, err = begin(ctx, o, archives.Progress(r.p)); err != nil {
			return err
		}
	}
	return nil
}

// end ends the backups, and frees the lock. If containers could not be thawed, the journal stays
// for who thaws them later.
func (r *attempt) end(failure error) {
	stays := failure != nil && r.stuck && r.Begin == nil
	finish := func(end func() error) {
		switch {
		case failure == nil && r.exclusive():
			r.held = append(r.held, end)
			return
		case failure == nil:
			r.ending.Go(end)
			return
		}
		_ = end() // the failure says more
	}
	for _, one := range r.parts {
		switch {
		case one.backup == nil:
		case stays && r.lock == nil:
			finish(one.backup.Abandon)
		default:
			finish(one.backup.Close)
		}
		one.backup = nil
	}
	switch {
	case r.lock == nil:
	case stays:
		finish(r.lock.Abandon)
	default:
		finish(r.lock.Close)
	}
	r.lock = nil
}

// readLive is the first pass. Concurrently it checks that nothing changed before the
// lock was taken, and waits for those who freeze the same containers.
func (r *attempt) readLive(ctx context.Context) error {
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

func (r *attempt) passLive(ctx context.Context) error {
	if r.before.idle {
		return nil
	}
	return r.pass(ctx, volumebackup.Live, func(*part, []volumebackup.Archive) {})
}

// pass reads all volumes, and hands over what the archives of each snapshot are by now.
func (r *attempt) pass(ctx context.Context, mode volumebackup.Mode, read func(*part, []volumebackup.Archive)) error {
	calls, callsCtx := errgroup.WithContext(ctx)
	for _, one := range r.parts {
		if len(one.volumes) == 0 {
			continue
		}
		calls.Go(func() error {
			archives, err := one.backup.Pass(callsCtx, mode)
			read(one, archives)
			return err
		})
	}
	return calls.Wait()
}

// finish reads what is left and stores it all.
func (r *attempt) finish(ctx context.Context, u *dockerop.Rollback) error {
	u.Add(r.removeStored)
	err := r.readHooked(ctx)
	for _, one := range r.parts {
		if made := one.imageID; made != "" {
			u.Add(func(ctx context.Context) error { return r.engine.docker.RemoveImage(ctx, made) })
		}
	}
	if err != nil {
		return err
	}
	for _, one := range r.parts { // before there are archives that have no image
		if err := one.limitLayers(ctx, u); err != nil {
			return err
		}
	}
	for _, one := range r.parts {
		if err := one.store(ctx); err != nil {
			return err
		}
	}
	return nil
}

// removeStored removes the archives that may be in the store: a lost answer may hide a success.
func (a *taking) removeStored(ctx context.Context) error {
	var claims []volumebackup.Claim
	for _, one := range a.parts {
		if one.stored {
			claims = append(claims, archives.ClaimOf(*one.record))
		}
	}
	if len(claims) == 0 {
		return nil
	}
	_, err := a.engine.volumes.Remove(ctx, volumebackup.RemoveOptions{Claims: claims})
	return err
}

// store makes the archives durable.
func (a *part) store(ctx context.Context) error {
	if !a.stores() {
		return nil
	}
	a.p.Status("store", "writing to the store")
	own, err := labels.Encode(*a.record)
	if err != nil {
		return fmt.Errorf("describe container %s: %w", a.record.Container.Name, err)
	}
	a.stored = true
	archives, err := a.backup.Publish(ctx, volumebackup.Origin{
		Engine: a.from.engine.ID, ImageStore: a.from.engine.ImageStore, Container: a.record.Container.ID, ContainerName: a.record.Container.Name,
		First: a.from.latest.Snapshot == nil, Labels: own,
	})
	for _, archive := range archives {
		a.lost = a.lost || archive.Skipped > 0
		a.contradicted = a.contradicted || archive.Contradicted > 0
	}
	if err != nil {
		return err
	}
	a.sweepDue = a.backup.SweepDue()
	return nil
}

// readStill reads the volumes and commits the containers, once nobody writes.
func (r *attempt) readStill(ctx context.Context, who writers) error {
	mode := volumebackup.Frozen
	if who.idle || r.Quiesce != nil && !r.Freezes {
		mode = volumebackup.Idle
	}
	read := make([][]volumebackup.Archive, len(r.parts))
	err := r.pass(ctx, mode, func(one *part, archives []volumebackup.Archive) { read[slices.Index(r.parts, one)] = archives })
	if err != nil {
		return err
	}
	r.read = r.engine.now()
	for i, one := range r.parts {
		if len(read[i]) != len(one.volumes) {
			return fmt.Errorf("the worker archived %d of %d volumes", len(read[i]), len(one.volumes))
		}
		recordArchives(one.record.Mounts, read[i])
		recordExclusions(one.record.Mounts, one.volumes, read[i])
		if one.stores() {
			one.record.Store, one.record.StoreID = one.backup.Store()
		}
	}
	return r.commitAlone(ctx, who)
}

// commitAlone commits the containers, and concurrently checks that no new writer joined during
// the last pass. On an error it leaves no image.
func (r *attempt) commitAlone(ctx context.Context, who writers) error {
	options := make([]container.CommitOptions, len(r.parts))
	for i, one := range r.parts {
		own, err := one.seal()
		if err != nil {
			return err
		}
		options[i] = container.CommitOptions{Comment: one.comment(), Config: commitConfig(one.from, own)}
	}
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() error { return r.checkAlone(callsCtx, who) })
	for i, one := range r.parts {
		calls.Go(func() (err error) {
			if one.imageID, err = r.engine.docker.Commit(callsCtx, one.from.Container.ID, options[i]); err != nil {
				err = one.commitFailed(err)
			}
			return err
		})
	}
	err := calls.Wait()
	if err == nil {
		return nil
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	return errors.Join(err, r.dropImages(after))
}

// dropImages removes what was committed.
func (r *attempt) dropImages(ctx context.Context) error {
	var failed error
	for _, one := range r.parts {
		if one.imageID == "" {
			continue
		}
		if err := r.engine.docker.RemoveImage(ctx, one.imageID); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		one.imageID = ""
	}
	return failed
}

// checkAlone finds out whether a container that is not frozen began to write during the last
// pass.
func (r *attempt) checkAlone(ctx context.Context, who writers) error {
	now, err := r.look(ctx)
	if err != nil || !now.joined(who) {
		return err
	}
	if !r.last {
		return errJoined
	}
	r.warnTorn(errJoined.Error() + " while they were read")
	return nil
}

// warnTorn says why what is captured may not be of one moment.
func (r *attempt) warnTorn(why string) {
	for _, one := range r.parts {
		one.lost = true
	}
	r.p.Warn("volumes", why+": what is captured may be torn")
}
