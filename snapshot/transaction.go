package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// transaction is a restore in place on its way.
type transaction struct {
	engine  *Engine
	plan    replacement
	options ReplaceOptions
	p       Progress
	watch   *watch

	journal journal
	lock    VolumeWorker // holds the lock and the journal
	worker  VolumeWorker // reads and writes the volumes
	release func()       // tells who watches over this process that all is done
	when    occasion     // of the safety snapshot
	safety  *Snapshot    // once it is taken

	stopping bool // the engine may still be stopping something

	touched bool // something was done that has to be taken back
	written bool // the volumes may have changed
	newID   string
	changes []VolumeChange
	lost    bool           // something of the volumes could not be brought back
	ending  errgroup.Group // what is not waited for
}

// close ends the workers, and waits until they are gone.
func (t *transaction) close() {
	t.endWorker()
	_ = t.ending.Wait() // told already
	if t.lock != nil {
		if err := t.lock.Close(); err != nil {
			t.p.warn("remove", err.Error())
		}
		t.lock = nil
	}
	if t.release != nil {
		t.release()
		t.release = nil
	}
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
		if err := worker.Close(); err != nil {
			t.p.warn("remove", err.Error())
		}
		return nil
	})
}

// run does everything, or takes everything back.
func (t *transaction) run(ctx context.Context) (Replaced, error) {
	for _, note := range t.plan.notes {
		t.p.warn("check", note.String())
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
	result.Timings = t.watch.done()
	return result, nil
}

func (t *transaction) result() Replaced {
	return Replaced{
		Restored: Restored{ContainerID: t.newID, Name: t.plan.name, Snapshot: t.plan.snapshot, Started: t.plan.start, Plan: t.plan.steps(t.options), Incomplete: t.lost},
		Safety:   t.safety, Volumes: t.changes,
	}
}

// open takes the lock and writes the journal: from here on a crash is repaired by
// the next command. The worker is started beside it.
func (t *transaction) open(ctx context.Context) (err error) {
	if t.when, err = t.engine.newOccasion(); err != nil {
		return err
	}
	safety := t.when.id
	if t.options.NoSafety {
		safety = ""
	}
	t.journal = newJournal(t.plan, safety)
	if t.options.StopTimeout != nil {
		t.journal.Timeout = max(0, *t.options.StopTimeout)
	}
	t.journal.Worker = volumebackup.LockName(t.journal.lock()) + "-" + string(t.when.id[len(t.when.id)-6:])
	missing := t.plan.missingVolumes()
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
func (t *transaction) takeLock(ctx context.Context) error {
	options, err := t.journal.options()
	if err != nil {
		return err
	}
	if t.journal.OneShot && t.journal.Running {
		options.Freezes = t.plan.running() // its safety snapshot is taken before it stops
	}
	t.lock, err = t.engine.volumes.OpenRestore(ctx, options, nil)
	return err
}

// makeVolumes creates the volumes that are gone. One that has come meanwhile is
// somebody else's: then everything is looked at again.
func (t *transaction) makeVolumes(ctx context.Context, missing []volume.CreateOptions) error {
	ours := t.journal.Made
	t.journal.Made = nil // what is not made is not removed either
	for _, create := range missing {
		_, err := t.engine.docker.VolumeInspect(ctx, create.Name)
		if err == nil {
			return errMoved
		}
		if !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("inspect volume %s: %w", create.Name, err)
		}
		if slices.Contains(ours, create.Name) {
			t.journal.Made = append(t.journal.Made, create.Name)
		}
		if _, err := t.engine.docker.VolumeCreate(context.WithoutCancel(ctx), create); err != nil {
			return fmt.Errorf("create volume %s: %w", create.Name, err)
		}
	}
	return nil
}

// running are the IDs of the containers that write to the volumes.
func (r *replacement) running() []string {
	ids := []string{r.old.ID}
	for _, o := range r.others {
		ids = append(ids, o.ID)
	}
	return ids
}

// openWorker starts the worker that reads and writes volumes, if there are any.
func (t *transaction) openWorker(ctx context.Context) (VolumeWorker, error) {
	volumes := distinct(t.journal.Holds, t.journal.Volumes, t.journal.Made)
	if len(volumes) == 0 {
		return nil, nil
	}
	return t.engine.volumes.OpenRestore(ctx, volumebackup.RestoreOptions{
		Worker: t.journal.Worker, Purpose: "restore " + string(t.plan.snapshot.ID), Volumes: volumes,
	}, volumeEvents(t.p))
}

// watchOver has somebody take everything back should this process be killed.
func (t *transaction) watchOver(ctx context.Context) (err error) {
	if t.engine.guard != nil {
		t.release, err = t.engine.guard(ctx, Watched{Replaced: t.plan.name})
	}
	return describe(err, "guard the restore")
}

// replace is the part that is taken back if it fails.
func (t *transaction) replace(ctx context.Context) error {
	if err := t.check(ctx); err != nil {
		return err
	}
	t.watch.lap("check")
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
	t.watch.lap("stop")
	if err := t.restoreVolumes(ctx); err != nil {
		return err
	}
	t.watch.lap("volumes")
	return t.make(ctx)
}

// check looks again, now that nobody else can change the container, and at what
// only a worker can see.
func (t *transaction) check(ctx context.Context) error {
	if err := t.waitForRivals(ctx); err != nil {
		return err
	}
	found, err := t.engine.findReplaced(ctx, t.plan.snapshot, t.options.Name)
	if err != nil {
		return err
	}
	if (found == nil) != (t.plan.old == nil) || found != nil && !sameContainer(*found, *t.plan.old) {
		return errMoved
	}
	problems, err := t.checkArchives(ctx, t.targets())
	if err == nil && len(problems) > 0 {
		err = &ProblemsError{Problems: problems}
	}
	return err
}

// waitForRivals waits for who works on the same volumes, and begins again if there
// is another restore in place about the same. Of two that meet, the one whose lock
// sorts last gives way.
func (t *transaction) waitForRivals(ctx context.Context) error {
	e, j := t.engine, t.journal
	about := concern{words: []string{t.plan.name}, volumes: distinct(j.Volumes, j.Made)}
	if t.plan.old != nil {
		about = about.of(*t.plan.old)
	}
	lock := volumebackup.LockName(j.lock())
	rivals, readers, err := e.findRivals(ctx, []string{lock, j.Worker}, about, t.p)
	if err != nil {
		return err
	}
	for _, r := range rivals {
		name := summaryName(r.worker.Summary)
		if r.worker.alive && (lock < name || volumebackup.IsSettled(name)) {
			if err := e.await(ctx, r.worker, r.journal.Name, t.p); err != nil {
				return err
			}
		}
	}
	if len(rivals) > 0 {
		return errMoved
	}
	for _, w := range readers {
		if err := e.await(ctx, w, t.plan.name, t.p); err != nil {
			return err
		}
	}
	return nil
}

// checkArchives finds archives that are not there or not sound, and volumes that
// have no room for them.
func (t *transaction) checkArchives(ctx context.Context, targets []volumebackup.Target) ([]Problem, error) {
	var problems []Problem
	for _, target := range targets {
		found, err := archiveProblem(target.Volume, t.worker.Check(ctx, string(t.plan.snapshot.ID), target))
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// archiveProblem makes a problem of what a worker says about an archive. Other
// errors are returned.
func archiveProblem(volume string, err error) ([]Problem, error) {
	kind := ProblemArchive
	switch {
	case err == nil:
		return nil, nil
	case cerrdefs.IsResourceExhausted(err):
		kind = ProblemNoSpace
	case !errors.Is(err, protocol.Damaged) && !errors.Is(err, protocol.NotFound):
		return nil, err
	}
	return []Problem{{Kind: kind, Subject: volume, Text: err.Error()}}, nil
}

// targets are the volumes that have an archive.
func (t *transaction) targets() []volumebackup.Target {
	var targets []volumebackup.Target
	for _, v := range t.plan.volumes {
		if v.archive != nil {
			own := (v.create.Driver == "" || v.create.Driver == "local") && len(v.create.DriverOpts) == 0
			targets = append(targets, volumebackup.Target{Archive: v.archive.Index, Root: v.archive.Root, Volume: v.create.Name, Local: own})
		}
	}
	return targets
}

func (t *transaction) restoreVolumes(ctx context.Context) error {
	targets := t.targets()
	if len(targets) > 0 {
		t.p.status("volumes", "restoring volumes")
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
		t.lost = anySkipped(results)
		if err := t.checkUnused(ctx); err != nil { // somebody has read, or written, what was half done
			return err
		}
	}
	t.endWorker()
	return context.Cause(ctx)
}

// checkUnused finds containers that were started meanwhile and mount a volume
// which is about to be written.
func (t *transaction) checkUnused(ctx context.Context) error {
	running, err := t.engine.usersOf(ctx, t.journal.Volumes)
	if err != nil {
		return err
	}
	if problems := t.plan.holders(surroundings{containers: without(running, nil)}, false); len(problems) > 0 {
		return &ProblemsError{Problems: problems}
	}
	return nil
}

// make creates the new container, and sees to it that it comes up.
func (t *transaction) make(ctx context.Context) error {
	id, err := t.engine.makeContainer(ctx, restore{
		id: t.plan.snapshot.ID, spec: t.plan.spec, name: t.plan.name, foreign: t.plan.foreign,
	}, t.p)
	if err != nil {
		return err
	}
	t.newID = id
	t.watch.lap("create")
	if !t.plan.start {
		t.watch.skip("start", "wait")
		return context.Cause(ctx)
	}
	t.engine.startOthers(ctx, t.plan.peers(), t.p)
	t.p.status("start", "starting container "+t.plan.name)
	if err := t.engine.docker.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return fmt.Errorf("start container %s: %w", t.plan.name, err)
	}
	t.watch.lap("start")
	if err := t.engine.waitReady(ctx, id, t.plan.name, t.options, t.p); err != nil {
		return err
	}
	if t.plan.pause {
		if err := t.engine.docker.ContainerPause(ctx, id); err != nil {
			return fmt.Errorf("pause container %s: %w", t.plan.name, err)
		}
	}
	t.watch.lap("wait")
	return context.Cause(ctx)
}

// commit is the end of the transaction. What fails afterwards is told, but
// nothing is taken back: a crash from here on is rolled forward.
func (t *transaction) commit(ctx context.Context) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := t.lock.Held(ctx); err != nil {
		return err
	}
	if err := t.lock.Release(ctx); err != nil {
		return err
	}
	t.p.status("remove", "removing what was replaced")
	if err := t.engine.finishReplace(ctx, t.journal, t.p); err != nil {
		_ = t.lock.Abandon() // the journal stays, for who finishes it
		t.p.warn("remove", fmt.Sprintf("%v. When the cause is removed, type: docker snapshot recover %s", err, t.plan.name))
	}
	return nil
}

// takeBack puts everything back, and reports what failed first, then what was undone.
func (t *transaction) takeBack(ctx context.Context, failure error) error {
	t.endWorker()
	_ = t.ending.Wait()
	switch {
	case t.lock == nil: // so no volumes were made
		return failure
	case !t.touched:
		return errors.Join(failure, t.engine.removeVolumes(ctx, t.journal.Made))
	}
	t.p.status("undo", "putting everything back")
	j := t.journal
	if !t.written {
		j.Volumes = nil
	}
	if settled, err := t.regain(ctx); settled || err != nil {
		return errors.Join(failure, err)
	}
	undo := t.engine.undoReplace
	if t.stopping {
		undo = t.engine.undoCrashed
	}
	undone, err := undo(ctx, j, t.p)
	if err != nil {
		t.engine.abandon(ctx, t.lock, j) // the journal stays, for docker snapshot recover
		return errors.Join(failure, err)
	}
	if err := t.lock.Release(context.WithoutCancel(ctx)); err != nil {
		t.p.warn("undo", err.Error())
	}
	return errors.Join(failure, errors.New(undone))
}

// regain takes the lock again if it was lost: the worker that held it was killed.
// Another command may then have put everything back, or is doing so; it has if
// neither the journal nor the old container is there.
func (t *transaction) regain(ctx context.Context) (settled bool, err error) {
	ctx = context.WithoutCancel(ctx)
	if !errors.Is(t.lock.Held(ctx), volumebackup.ErrLost) {
		return false, nil
	}
	options, err := t.journal.options()
	if err != nil {
		return false, err
	}
	lost := t.lock
	if t.lock, err = t.engine.volumes.OpenRestore(ctx, options, nil); err != nil {
		t.lock = lost
		data := dataSafe
		if t.written {
			data = dataMixed
		}
		return false, &UndoError{Container: t.plan.name, State: t.engine.account(ctx, t.journal, data), Err: fmt.Errorf("take the lock again: %w", err)}
	}
	if t.journal.Old == "" || t.journal.OneShot { // what there is to undo shows
		return false, lost.Close()
	}
	old, err := t.engine.inspectIfThere(ctx, t.journal.Old)
	return old == nil && err == nil, errors.Join(err, lost.Close())
}
