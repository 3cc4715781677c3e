package replace

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
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// transaction is a restore in place that is under way.
type transaction struct {
	engine  *Replacer
	Plan    replacement
	options Options
	p       plan.Progress
	watch   *plan.Stopwatch

	journal pending.Journal
	lock    archives.Lock     // bears the journal
	worker  archives.Worker   // reads and writes the volumes
	release func()            // tells the guard that nothing is left to do
	when    capture.Request   // of the safety snapshot
	safety  *catalog.Snapshot // once it is taken

	stage     stage
	stopping  bool     // the engine may still be stopping something
	made      []string // volumes that were gone, and are there again
	newID     string
	changes   []VolumeChange
	lost      bool           // something of the volumes could not be brought back, or another container does not run again
	unsettled bool           // something is left to do: the journal stays, and the guard acts on it
	ending    errgroup.Group // workers that are being removed
}

// stage is how far a transaction has come. The stages follow one another.
type stage int

const (
	prepared  stage = iota // the journal is written; nothing of the user's was touched
	quiescing              // containers are stopped, and the old one steps aside
	writing                // volumes may have changed
)

// close ends the workers, and waits until they are gone. The guard is only told that
// all is done if it is: else it goes on when this process has ended.
func (t *transaction) close() {
	t.endWorker()
	if err := t.ending.Wait(); err != nil { // told already
		t.unsettled = true
	}
	if t.lock != nil {
		if err := t.lock.Close(); err != nil {
			t.unsettled = true
			t.p.Warn("remove", err.Error())
		}
		t.lock = nil
	}
	if t.release != nil && !t.unsettled {
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

// run does everything, or rolls everything back.
func (t *transaction) run(ctx context.Context) (Result, error) {
	for _, note := range t.Plan.notes {
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
		return Result{}, t.takeBack(ctx, err)
	}
	t.close()
	result := t.Summary()
	result.Timings = t.watch.Done()
	return result, nil
}

func (t *transaction) Summary() Result {
	r := Result{
		Saves: t.Plan.saves(t.options), Others: otherNames(t.Plan.Others),
		Restored: build.Restored{ContainerID: t.newID, Name: t.Plan.Name, Snapshot: t.Plan.Snapshot, Started: t.Plan.Start, Plan: t.Plan.steps(t.options), Incomplete: t.lost},
		Safety:   t.safety, Volumes: t.changes,
	}
	if t.Plan.Old != nil {
		r.Old, r.Stops = dockerop.ContainerName(*t.Plan.Old), t.Plan.Old.State.Running
		r.Config = runconfig.Changes(*t.Plan.Old, t.Plan.Snapshot, t.Plan.Spec)
	}
	return r
}

// replace is the part that is rolled back if it fails.
func (t *transaction) replace(ctx context.Context) error {
	if err := t.check(ctx); err != nil {
		return err
	}
	t.watch.Lap("check")
	if err := t.stopSafely(ctx); err != nil {
		return err
	}
	if err := t.engine.stepAside(ctx, t.journal); err != nil {
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
	targets := slices.DeleteFunc(t.targets(), func(target volumebackup.Target) bool { return !slices.Contains(t.Plan.written(), target.Volume) })
	t.changes = t.Plan.changes(nil, nil)
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
		t.stage = writing
		results, err := t.worker.Apply(ctx, string(t.Plan.Snapshot.ID), targets)
		if err != nil {
			return err
		}
		t.changes = t.Plan.changes(targets, results)
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
	return t.worker.Secure(ctx, string(t.safety.ID), archivesOf(*t.safety, t.journal.Volumes), string(t.Plan.Snapshot.ID), targets)
}

// make creates the new container, and sees to it that it comes up.
func (t *transaction) make(ctx context.Context) error {
	id, err := t.engine.build.Make(ctx, build.Container{
		Spec: t.Plan.Spec, Name: t.Plan.Name, Foreign: t.Plan.foreign,
	}, t.p)
	if err != nil {
		return err
	}
	t.newID = id
	if err := t.fillAnonymous(ctx); err != nil {
		return err
	}
	t.watch.Lap("create")
	if !t.Plan.Start {
		t.watch.Skip("start", "wait")
		return context.Cause(ctx)
	}
	peersErr := t.engine.startOthers(ctx, t.Plan.peers(), t.p)
	t.p.Status("start", "starting container "+t.Plan.Name)
	if err := t.engine.docker.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return errors.Join(peersErr, fmt.Errorf("start container %s: %w", t.Plan.Name, err))
	} // a peer that did not start, though this one did, is tried again at the end
	t.watch.Lap("start")
	if err := t.engine.waitReady(ctx, id, t.Plan.Name, t.options, t.p); err != nil {
		return err
	}
	if t.Plan.Pause {
		if err := t.engine.docker.MakePaused(ctx, id); err != nil {
			return fmt.Errorf("pause container %s: %w", t.Plan.Name, err)
		}
	}
	t.watch.Lap("wait")
	return context.Cause(ctx)
}

// fillAnonymous fills the anonymous volumes that were made together with the new
// container. They are gone when that is removed, so a rollback needs no journal of them.
// The worker has to end before the container starts: the engine keeps what it mounts.
func (t *transaction) fillAnonymous(ctx context.Context) error {
	volumes := t.Plan.anonymous()
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
	o := volumebackup.WorkerOptions{Name: t.journal.Worker}
	made, err := t.engine.build.FillAnonymous(ctx, t.Plan.Snapshot.ID, volumes, names, o, t.p)
	if made == nil {
		return err
	}
	t.worker, t.lost = made.Worker, t.lost || made.Lost
	t.endWorker()
	return errors.Join(err, t.ending.Wait())
}

// commit passes the point of no return. What fails afterwards is only reported, and after a
// crash the restore is finished, not rolled back.
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
		t.p.Send(plan.Event{Level: plan.LevelWarning, Phase: "remove", Text: err.Error(), Topic: plan.TopicUnfinished, Subject: t.Plan.Name})
		return nil
	}
	t.forget(ctx)
	return nil
}

// leavePending ends the worker that holds the lock, but leaves its journal to the
// guard, to the next command, and to [Replacer.Recover].
func (t *transaction) leavePending(ctx context.Context) {
	t.unsettled = true
	t.engine.abandon(ctx, t.lock)
	t.lock = nil
}

// takeBack rolls back. Its error says what failed, and then what was put back.
func (t *transaction) takeBack(ctx context.Context, failure error) error {
	t.endWorker()
	_ = t.ending.Wait()
	switch {
	case t.lock == nil: // so no volumes were made
		return failure
	case t.stage == prepared:
		err := t.engine.docker.RemoveVolumes(ctx, t.made)
		if err != nil {
			t.leavePending(ctx)
		} else {
			t.forget(ctx)
		}
		return errors.Join(failure, err)
	}
	t.p.Status("undo", "putting everything back")
	settled, err := t.regain(ctx)
	if err != nil {
		t.leavePending(ctx)
	}
	if settled || err != nil {
		return errors.Join(failure, err)
	}
	back := t.rollback()
	rollBack := back.run
	if t.stopping {
		rollBack = back.runAfterStop
	}
	undone, err := rollBack(ctx)
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

// rollback is the rollback of this transaction, from where it has come to.
func (t *transaction) rollback() *rollback {
	b := &rollback{engine: t.engine, journal: t.journal, p: t.p, when: atOnce, made: t.made, data: dataSafe}
	if t.stage == writing && len(t.journal.Volumes) > 0 {
		b.data = dataMixed
	}
	return b
}

// regain takes the lock again if the worker that held it was killed. Meanwhile another command may
// have rolled back: it has if neither the journal nor the old container is there.
func (t *transaction) regain(ctx context.Context) (settled bool, err error) {
	ctx = context.WithoutCancel(ctx)
	if !errors.Is(t.lock.Held(ctx), volumebackup.ErrLost) {
		return false, nil
	}
	lock, err := t.engine.lockWithJournal(ctx, t.journal, lockOptions(t.journal))
	if err != nil && lock != nil {
		err = errors.Join(err, lock.Close())
	}
	if err != nil { // the journal is on the one that was lost, and stays
		return false, &UndoError{Container: t.Plan.Name, State: t.rollback().account(ctx), Err: fmt.Errorf("take the lock again: %w", err)}
	}
	lost := t.lock
	t.lock = lock
	if t.journal.Old == "" || t.journal.OneShot { // what there is to undo shows
		return false, lost.Close()
	}
	old, err := t.engine.docker.InspectIfThere(ctx, t.journal.Old)
	return old == nil && err == nil, errors.Join(err, lost.Close())
}
