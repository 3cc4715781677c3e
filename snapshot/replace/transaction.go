package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// transaction is a restore in place that is under way: what it does to all members together.
type transaction struct {
	*group
	engine *Replacer
	asked  []*member // in the order in which they were asked for
	p      plan.Progress
	watch  *plan.Stopwatch

	journal pending.Journal
	lock    archives.Lock   // bears the journal
	worker  archives.Worker // reads and writes the volumes
	release func()          // tells the guard that nothing is left to do
	when    capture.Request // of the safety snapshots

	stage     stage
	stopping  bool           // the engine may still be stopping something
	standIns  []string       // containers that are captured in the place of those that are gone
	made      []string       // volumes that were gone, and are there again
	lost      bool           // something of the volumes could not be brought back, or another container does not run again
	unsettled bool           // something is left to do: the journal stays, and the guard acts on it
	regained  bool           // the lock was lost and taken again: another process may have rolled back
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
func (t *transaction) run(ctx context.Context) ([]Result, error) {
	for _, m := range t.members {
		for _, note := range m.notes {
			t.p.Warn("check", note.String())
		}
	}
	err := t.open(ctx)
	if err == nil {
		err = t.replace(ctx)
	}
	if err == nil {
		err = t.commit(ctx)
	}
	if err != nil {
		return nil, t.takeBack(ctx, err)
	}
	t.close()
	return t.results(), nil
}

// results say what was done, or would be, in the order in which it was asked for.
func (t *transaction) results() []Result {
	timings := t.watch.Done()
	all := make([]Result, len(t.asked))
	for i, m := range t.asked {
		all[i] = t.result(m)
		all[i].Timings, all[i].Incomplete = timings, t.lost
	}
	return all
}

// result says what was done to a member.
func (g *group) result(m *member) Result {
	r := Result{
		Keeps: g.keeps, Saves: m.saves(g), Others: otherNames(g.others),
		Restored: build.Restored{ContainerID: m.newID, Name: m.Name, Snapshot: m.Snapshot, Started: m.Start, Plan: g.steps(m)},
		Safety:   m.safety, Volumes: m.changes,
	}
	if m.promoted != nil {
		r.Copy = dockerop.ContainerName(m.promoted.container)
	}
	if m.Old != nil {
		r.Old, r.Stops, r.Freezes = dockerop.ContainerName(*m.Old), m.Old.State.Running && !g.live, m.isFrozen()
		if !g.keeps {
			r.Config = runconfig.Changes(*m.Old, m.Snapshot, m.Spec)
		}
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
	if err := t.stepAside(ctx); err != nil {
		return err
	}
	t.watch.Lap("stop")
	if err := t.restoreVolumes(ctx); err != nil {
		return err
	}
	t.watch.Lap("volumes")
	switch {
	case t.live:
		return t.finishFrozen(ctx)
	case t.keeps:
		return t.startKept(ctx)
	}
	if err := t.standUp(ctx); err != nil {
		return err
	}
	return t.checkCopy(ctx)
}

func (t *transaction) restoreVolumes(ctx context.Context) error {
	written := t.written()
	targets := slices.DeleteFunc(t.targets(), func(target volumebackup.Target) bool { return !slices.Contains(written, target.Volume) })
	t.noteChanges(nil, nil)
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
		results, err := t.worker.Apply(ctx, targets)
		if err != nil {
			return err
		}
		t.noteChanges(targets, results)
		t.lost = build.AnySkipped(results)
		if err := t.checkUnused(ctx); err != nil { // somebody has read, or written, what was half done
			return err
		}
	}
	t.endWorker()
	return context.Cause(ctx)
}

// noteChanges records what happened to the volumes of each member.
func (t *transaction) noteChanges(targets []volumebackup.Target, results []volumebackup.RestoreResult) {
	for _, m := range t.members {
		m.changes = m.changed(targets, results)
	}
}

// secure makes sure that the volumes can be made again what the safety snapshots say, while they still hold it.
func (t *transaction) secure(ctx context.Context, targets []volumebackup.Target) error {
	var taken []catalog.Snapshot
	for _, m := range t.members {
		if m.safety != nil {
			taken = append(taken, *m.safety)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return t.worker.Secure(ctx, archivesOf(taken, t.journal.Volumes), targets)
}

// commit passes the point of no return. What fails afterwards is only reported, and after a
// crash the restore is finished, not rolled back.
func (t *transaction) commit(ctx context.Context) error {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err := t.lock.Held(ctx); err != nil {
		return err
	}
	// The last thing that can fail: a client that is killed here leaves the files, and the guard rolls back the rest.
	if err := t.placeFiles(); err != nil {
		return err
	}
	if err := t.lock.Release(ctx); err != nil {
		return errors.Join(err, t.removeFiles(t.members))
	}
	if t.live { // at once; if that fails, it is tried again below
		_, _ = t.engine.docker.ThawOwn(ctx, t.frozen())
	}
	t.p.Status("remove", "removing what was replaced")
	err := t.engine.finishReplace(ctx, t.journal, t.p)
	t.watch.Lap("remove")
	if err != nil {
		t.leavePending(ctx)
		_, isDown := errors.AsType[*NotStartedError](err)
		t.lost = t.lost || isDown // what is only not removed yet is a warning
		t.p.Send(plan.Event{Level: plan.LevelWarning, Phase: "remove", Text: err.Error(), Topic: plan.TopicUnfinished, Subject: t.journal.Name()})
		return nil
	}
	t.forget(ctx)
	return nil
}

// placeFiles puts the attachments where they were asked for.
func (t *transaction) placeFiles() error {
	for i, m := range t.members {
		if err := m.files.Place(); err != nil {
			return errors.Join(err, t.removeFiles(t.members[:i]))
		}
	}
	return nil
}

func (t *transaction) removeFiles(of []*member) error {
	var failed error
	for _, m := range of {
		failed = errors.Join(failed, m.files.Remove())
	}
	return failed
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
		err := errors.Join(t.dropTrial(ctx), t.engine.docker.RemoveVolumes(ctx, t.made), t.thawSaved(ctx))
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

// thawSaved lets containers run again that were frozen for the safety snapshots, and that could not be thawed then.
func (t *transaction) thawSaved(ctx context.Context) error {
	if !t.savesFirst() {
		return nil
	}
	_, err := t.engine.docker.Thaw(context.WithoutCancel(ctx), t.running())
	return err
}

// rollback is the rollback of this transaction, from where it has come to.
func (t *transaction) rollback() *rollback {
	b := &rollback{engine: t.engine, journal: t.journal, p: t.p, when: atOnce, made: t.made, data: dataSafe}
	if t.stage == writing && len(t.journal.Volumes) > 0 {
		b.data = dataMixed
	}
	if t.regained && t.keeps { // what is there says whether there is anything left to put back
		b.when = later
	}
	return b
}

// regain takes the lock again if the worker that held it was killed. Meanwhile another command may
// have rolled back: it has if neither the journal nor any old container is there.
func (t *transaction) regain(ctx context.Context) (settled bool, err error) {
	ctx = context.WithoutCancel(ctx)
	if !errors.Is(t.lock.Held(ctx), volumebackup.ErrLost) {
		return false, nil
	}
	lock, err := t.engine.lockWithJournal(ctx, t.journal, lockOptions(t.journal), t.p)
	if err != nil && lock != nil {
		err = errors.Join(err, lock.Close())
	}
	if err != nil { // the journal is on the one that was lost, and stays
		return false, &UndoError{Container: t.journal.Name(), State: t.rollback().account(ctx), Err: fmt.Errorf("take the lock again: %w", err)}
	}
	lost := t.lock
	t.lock, t.regained = lock, true
	gone, err := t.areGone(ctx)
	return gone, errors.Join(err, lost.Close())
}

// areGone tells whether all old containers are gone that a restore in place removes last. If there is
// none, what there is to undo shows.
func (t *transaction) areGone(ctx context.Context) (bool, error) {
	gone := false
	for _, m := range t.journal.Members {
		if m.Old == "" || m.OneShot || t.journal.Keeps {
			continue
		}
		old, err := t.engine.docker.InspectIfThere(ctx, m.Old)
		if old != nil || err != nil {
			return false, err
		}
		gone = true
	}
	return gone, nil
}
