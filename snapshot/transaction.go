package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// transaction is a restore in place on its way.
type transaction struct {
	engine  *Engine
	plan    replacement
	options ReplaceOptions
	p       plan.Progress
	watch   *plan.Stopwatch

	journal pending.Journal
	lock    archives.Worker   // holds the lock and the journal
	worker  archives.Worker   // reads and writes the volumes
	release func()            // tells who watches over this process that all is done
	when    capture.Request   // of the safety snapshot
	safety  *catalog.Snapshot // once it is taken

	stopping bool // the engine may still be stopping something

	touched bool // something was done that has to be taken back
	pending bool // something is left to do, so the journal stays and the guard goes on
	written bool // the volumes may have changed
	newID   string
	changes []VolumeChange
	lost    bool           // something of the volumes could not be brought back, or another container does not run again
	ending  errgroup.Group // what is not waited for
}

// close ends the workers, and waits until they are gone. The guard is only told that
// all is done if it is: else it goes on when this process has ended.
func (t *transaction) close() {
	t.endWorker()
	if err := t.ending.Wait(); err != nil { // told already
		t.pending = true
	}
	if t.lock != nil {
		if err := t.lock.Close(); err != nil {
			t.pending = true
			t.p.Warn("remove", err.Error())
		}
		t.lock = nil
	}
	if t.release != nil && !t.pending {
		t.release()
	}
	t.release = nil
}

// endWorker has the worker removed, without waiting for that. Its last request
// was answered, so nothing is unfinished.
func (t *transaction) endWorker() {
	worker := t.worker
	if worker == nil {
		return
	}
	t.worker = nil
	t.ending.Go(func() error {
		err := worker.Close()
		if err != nil {
			t.p.Warn("remove", err.Error())
		}
		return err
	})
}

// run does everything, or takes everything back.
func (t *transaction) run(ctx context.Context) (Replaced, error) {
	for _, note := range t.plan.notes {
		t.p.Warn("check", note.String())
	}
	err := t.open(ctx)
	if err == nil {
		err = t.replace(ctx)
	}
	if err == nil {
		err = t.commit(ctx)
	}
	if err != nil {
		return Replaced{}, t.takeBack(ctx, err)
	}
	t.close()
	result := t.result()
	result.Timings = t.watch.Done()
	return result, nil
}

func (t *transaction) result() Replaced {
	r := Replaced{
		Saves: t.plan.saves(t.options), Others: otherNames(t.plan.others),
		Restored: copies.Restored{ContainerID: t.newID, Name: t.plan.name, Snapshot: t.plan.snapshot, Started: t.plan.start, Plan: t.plan.steps(t.options), Incomplete: t.lost},
		Safety:   t.safety, Volumes: t.changes,
	}
	if t.plan.old != nil {
		r.Old, r.Stops = dockerop.ContainerName(*t.plan.old), t.plan.old.State.Running
		r.Config = runconfig.Changes(*t.plan.old, t.plan.snapshot, t.plan.spec)
	}
	return r
}

// replace is the part that is taken back if it fails.
func (t *transaction) replace(ctx context.Context) error {
	if err := t.check(ctx); err != nil {
		return err
	}
	t.watch.Lap("check")
	first, second := t.stopSafely, t.stepAside
	if t.plan.isDead() { // it cannot be captured: a stand-in takes its name and has its volumes
		first, second = second, first
	}
	if err := first(ctx); err != nil {
		return err
	}
	if err := second(ctx); err != nil {
		return err
	}
	t.watch.Lap("stop")
	if err := t.restoreVolumes(ctx); err != nil {
		return err
	}
	t.watch.Lap("volumes")
	return t.make(ctx)
}

func (t *transaction) restoreVolumes(ctx context.Context) error {
	targets := slices.DeleteFunc(t.targets(), func(target volumebackup.Target) bool { return !slices.Contains(t.plan.written(), target.Volume) })
	t.changes = t.plan.changes(nil, nil)
	if len(targets) > 0 {
		t.p.Status("volumes", "restoring volumes")
		if err := t.secure(ctx, targets); err != nil {
			return err
		}
		if err := t.checkUnused(ctx); err != nil {
			return err
		}
		if err := t.lock.Held(ctx); err != nil {
			return err
		}
		t.written = true
		results, err := t.worker.Apply(ctx, string(t.plan.snapshot.ID), targets)
		if err != nil {
			return err
		}
		t.changes = t.plan.changes(targets, results)
		t.lost = build.AnySkipped(results)
		if err := t.checkUnused(ctx); err != nil { // somebody has read, or written, what was half done
			return err
		}
	}
	t.endWorker()
	return context.Cause(ctx)
}

// secure makes sure that the volumes can be made again what the safety snapshot says, while they still hold it.
func (t *transaction) secure(ctx context.Context, targets []volumebackup.Target) error {
	if t.safety == nil {
		return nil
	}
	return t.worker.Secure(ctx, string(t.safety.ID), archivesOf(*t.safety, t.journal.Volumes), string(t.plan.snapshot.ID), targets)
}

// make creates the new container, and sees to it that it comes up.
func (t *transaction) make(ctx context.Context) error {
	id, err := t.engine.build.Make(ctx, build.Container{
		Spec: t.plan.spec, Name: t.plan.name, Foreign: t.plan.foreign,
	}, t.p)
	if err != nil {
		return err
	}
	t.newID = id
	if err := t.fillAnonymous(ctx); err != nil {
		return err
	}
	t.watch.Lap("create")
	if !t.plan.start {
		t.watch.Skip("start", "wait")
		return context.Cause(ctx)
	}
	peersErr := t.engine.startOthers(ctx, t.plan.peers(), t.p)
	t.p.Status("start", "starting container "+t.plan.name)
	if err := t.engine.docker.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return errors.Join(peersErr, fmt.Errorf("start container %s: %w", t.plan.name, err))
	} // a peer that did not start, though this one did, is tried again at the end
	t.watch.Lap("start")
	if err := t.engine.waitReady(ctx, id, t.plan.name, t.options, t.p); err != nil {
		return err
	}
	if t.plan.pause {
		if err := t.engine.docker.MakePaused(ctx, id); err != nil {
			return fmt.Errorf("pause container %s: %w", t.plan.name, err)
		}
	}
	t.watch.Lap("wait")
	return context.Cause(ctx)
}

// fillAnonymous fills the anonymous volumes that were made together with the new
// container. They are gone when that is removed, so a rollback needs no journal of them.
// The worker has to end before the container starts: the engine keeps what it mounts.
func (t *transaction) fillAnonymous(ctx context.Context) error {
	volumes := t.plan.anonymous()
	if len(volumes) == 0 {
		return nil
	}
	names, err := t.engine.build.AnonymousNames(ctx, t.newID, volumes)
	if err != nil {
		return err
	}
	if err := t.ending.Wait(); err != nil { // the worker that bears the name
		return err
	}
	o := volumebackup.RestoreOptions{Worker: t.journal.Worker}
	made, err := t.engine.build.FillAnonymous(ctx, t.plan.snapshot.ID, volumes, names, o, t.p)
	if made == nil {
		return err
	}
	t.worker, t.lost = made.Worker, t.lost || made.Lost
	t.endWorker()
	return errors.Join(err, t.ending.Wait())
}

// commit is the end of the transaction. What fails afterwards is told, but
// nothing is taken back: a crash from here on is rolled forward.
func (t *transaction) commit(ctx context.Context) error {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err := t.lock.Held(ctx); err != nil {
		return err
	}
	if err := t.lock.Release(ctx); err != nil {
		return err
	}
	t.p.Status("remove", "removing what was replaced")
	if err := t.engine.finishReplace(ctx, t.journal, t.p); err != nil {
		t.leavePending(ctx)
		_, isDown := errors.AsType[*NotStartedError](err)
		t.lost = t.lost || isDown // what is only not removed yet is a warning
		t.p.Warn("remove", fmt.Sprintf("%v. When the cause is removed, type: docker snapshot recover %s", err, t.plan.name))
		return nil
	}
	t.forget(ctx)
	return nil
}

// leavePending ends the worker that holds the lock, but leaves its journal to the
// guard, to the next command, and to docker snapshot recover.
func (t *transaction) leavePending(ctx context.Context) {
	t.pending = true
	t.engine.abandon(ctx, t.lock)
	t.lock = nil
}

// takeBack puts everything back, and reports what failed first, then what was undone.
func (t *transaction) takeBack(ctx context.Context, failure error) error {
	t.endWorker()
	_ = t.ending.Wait()
	switch {
	case t.lock == nil: // so no volumes were made
		return failure
	case !t.touched:
		err := t.engine.docker.RemoveVolumes(ctx, t.journal.Made)
		if err != nil {
			t.leavePending(ctx)
		} else {
			t.forget(ctx)
		}
		return errors.Join(failure, err)
	}
	t.p.Status("undo", "putting everything back")
	j := t.journal
	if !t.written {
		j.Volumes = nil
	}
	settled, err := t.regain(ctx)
	if err != nil {
		t.leavePending(ctx)
	}
	if settled || err != nil {
		return errors.Join(failure, err)
	}
	undo := t.engine.undoReplace
	if t.stopping {
		undo = t.engine.undoCrashed
	}
	undone, err := undo(ctx, j, atOnce, t.p)
	if undone == "" {
		t.leavePending(ctx)
		return errors.Join(failure, err)
	}
	if err := t.lock.Release(context.WithoutCancel(ctx)); err != nil {
		t.p.Warn("undo", err.Error())
	}
	if err != nil { // all is back but others, which are to be started
		t.leavePending(ctx)
	} else {
		t.forget(ctx)
	}
	return errors.Join(failure, errors.New(undone), err)
}

// regain takes the lock again if it was lost: the worker that held it was killed.
// Another command may then have put everything back, or is doing so; it has if
// neither the journal nor the old container is there.
func (t *transaction) regain(ctx context.Context) (settled bool, err error) {
	ctx = context.WithoutCancel(ctx)
	if !errors.Is(t.lock.Held(ctx), volumebackup.ErrLost) {
		return false, nil
	}
	options, err := lockOptions(t.journal)
	if err != nil {
		return false, err
	}
	lock, err := t.engine.volumes.OpenRestore(ctx, options, nil)
	if err == nil {
		if err = lock.RecordJournal(ctx, options.Journal[pending.LabelJournal]); err != nil {
			err = errors.Join(err, lock.Close())
		}
	}
	if err != nil { // the journal is on the one that was lost, and stays
		data := dataSafe
		if t.written {
			data = dataMixed
		}
		return false, &UndoError{Container: t.plan.name, State: t.engine.account(ctx, t.journal, data), Err: fmt.Errorf("take the lock again: %w", err)}
	}
	lost := t.lock
	t.lock = lock
	if t.journal.Old == "" || t.journal.OneShot { // what there is to undo shows
		return false, lost.Close()
	}
	old, err := t.engine.docker.InspectIfThere(ctx, t.journal.Old)
	return old == nil && err == nil, errors.Join(err, lost.Close())
}
