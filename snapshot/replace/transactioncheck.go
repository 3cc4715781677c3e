package replace

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// check repeats the checks that may have changed before the lock was taken, and checks the
// archives, which only a worker can read.
func (t *transaction) check(ctx context.Context) error {
	if err := t.waitForRivals(ctx); err != nil {
		return err
	}
	found, err := t.engine.findReplaced(ctx, t.Plan.Snapshot, t.options.Name)
	if err != nil {
		return err
	}
	if (found == nil) != (t.Plan.Old == nil) || found != nil && !pending.SameContainer(*found, *t.Plan.Old) {
		return pending.ErrMoved
	}
	problems, err := t.checkArchives(ctx, t.targets())
	if err == nil && len(problems) > 0 {
		err = &plan.ProblemsError{Problems: problems}
	}
	return err
}

// waitForRivals waits for operations on the same volumes. If one of them is a restore in place,
// everything begins again. Of two that meet, the one whose lock sorts last gives way.
func (t *transaction) waitForRivals(ctx context.Context) error {
	e, j := t.engine, t.journal
	about := pending.Scope{Words: []string{t.Plan.Name}, Volumes: t.Plan.storage.Aliases(dockerop.Distinct(j.Volumes, j.Made))}
	if t.Plan.Old != nil {
		about = about.Of(*t.Plan.Old)
	}
	lock := volumebackup.LockName(j.Lock())
	rivals, readers, err := e.pending.Rivals(ctx, []string{lock, j.Worker}, about, t.p)
	if err != nil {
		return err
	}
	for _, r := range rivals {
		name := dockerop.SummaryName(r.Worker.Summary)
		if r.Worker.Alive && (lock < name || volumebackup.IsSettled(name)) {
			if err := e.pending.Await(ctx, r.Worker, r.Journal.Name, t.p); err != nil {
				return err
			}
		}
	}
	if len(rivals) > 0 {
		return pending.ErrMoved
	}
	for _, w := range readers {
		if err := e.pending.Await(ctx, w, t.Plan.Name, t.p); err != nil {
			return err
		}
	}
	return nil
}

// checkArchives finds archives that are missing or damaged, and volumes that have no room for
// them.
func (t *transaction) checkArchives(ctx context.Context, targets []volumebackup.Target) ([]plan.Problem, error) {
	var problems []plan.Problem
	for _, target := range targets {
		found, err := archives.Problem(target.Volume, t.worker.Check(ctx, string(t.Plan.Snapshot.ID), target))
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// targets are the volumes that have an archive.
func (t *transaction) targets() []volumebackup.Target {
	var targets []volumebackup.Target
	for _, v := range t.Plan.Volumes {
		if v.Archive != nil {
			own := (v.Create.Driver == "" || v.Create.Driver == "local") && len(v.Create.DriverOpts) == 0
			targets = append(targets, volumebackup.Target{Archive: v.Archive.Index, Root: v.Archive.Root, Volume: v.Create.Name, Local: own})
		}
	}
	return targets
}

// checkUnused finds containers that were started meanwhile and mount what will be written.
func (t *transaction) checkUnused(ctx context.Context) error {
	running, err := t.engine.build.UsersOf(ctx, t.Plan.storage, t.journal.Volumes)
	if err != nil {
		return err
	}
	if problems := t.Plan.holders(runconfig.Surroundings{Containers: running, Storage: t.Plan.storage}, false); len(problems) > 0 {
		return &plan.ProblemsError{Problems: problems}
	}
	return nil
}
