package replace

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// check repeats the checks that may have changed before the lock was taken, checks the archives, which only a worker can
// read, and tries to create the new containers.
func (t *transaction) check(ctx context.Context) error {
	if err := t.waitForRivals(ctx); err != nil {
		return err
	}
	for _, m := range t.members {
		found, err := t.engine.findReplaced(ctx, m.Snapshot, m.options.Name)
		if err != nil {
			return err
		}
		if (found == nil) != (m.Old == nil) || found != nil && !pending.SameContainer(*found, *m.Old) {
			return pending.ErrMoved
		}
	}
	if err := t.checkCopy(ctx); err != nil {
		return err
	}
	problems, err := t.checkArchives(ctx, t.targets())
	if err == nil && len(problems) > 0 {
		err = t.refuse(problems)
	}
	if err != nil {
		return err
	}
	return t.try(ctx)
}

// waitForRivals waits for operations on the same volumes. If one of them is a restore in place,
// everything begins again. Of two that meet, the one whose journal is on the lock that sorts last gives
// way.
func (t *transaction) waitForRivals(ctx context.Context) error {
	e, j := t.engine, t.journal
	about := t.scope()
	about.Volumes = t.storage.Aliases(dockerop.Distinct(j.Volumes, j.Made))
	about.Volumes = dockerop.Distinct(about.Volumes, t.storage.Paths(about.Volumes)) // others may read them as bind mounts
	lock, own := volumebackup.LockName(j.Lock()), []string{j.Worker}
	for _, id := range j.Locks() {
		own = append(own, volumebackup.LockName(id))
	}
	rivals, readers, err := e.pending.Rivals(ctx, own, about, t.p)
	if err != nil {
		return err
	}
	for _, r := range rivals {
		name := dockerop.SummaryName(r.Worker.Summary)
		if r.Worker.Alive && (lock < name || r.Worker.IsOver()) {
			if err := e.pending.Await(ctx, r.Worker, r.Journal.Name(), t.p); err != nil {
				return err
			}
		}
	}
	if len(rivals) > 0 {
		return pending.ErrMoved
	}
	for _, w := range readers {
		if err := e.pending.Await(ctx, w, j.Name(), t.p); err != nil {
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
		found, err := archives.Problem(target.Volume, t.worker.Check(ctx, target))
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// targets are the volumes that have an archive.
func (g *group) targets() []volumebackup.Target {
	var targets []volumebackup.Target
	for _, m := range g.members {
		if m.isPlanned() {
			continue
		}
		for _, v := range m.Volumes {
			if v.Archive != nil {
				own := (v.Create.Driver == "" || v.Create.Driver == "local") && len(v.Create.DriverOpts) == 0
				targets = append(targets, volumebackup.Target{
					Snapshot: string(m.Snapshot.ID), Archive: v.Archive.Index, Root: v.Archive.Root, Volume: v.Create.Name,
					Excluded: v.Archive.Excluded, Chosen: m.choiceIn(v), Local: own,
				})
			}
		}
	}
	return targets
}

// checkUnused finds containers that were started meanwhile and mount what will be written.
func (t *transaction) checkUnused(ctx context.Context) error {
	running, err := t.engine.build.UsersOf(ctx, t.storage, t.journal.Volumes)
	if err != nil {
		return err
	}
	if t.live {
		running = t.without(running)
		if err := t.checkFrozen(ctx); err != nil {
			return err
		}
	}
	if problems := t.inUse(running, t.written()); len(problems) > 0 {
		return t.refuse(problems)
	}
	return nil
}
