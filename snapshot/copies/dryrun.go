package copies

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// checkContent finds, for a dry run, what would prevent restoring the volumes: archives that are
// missing or damaged, or too little room. A worker reads the archives; nothing is made.
func (cp *Copier) checkContent(ctx context.Context, r restore, p plan.Progress) (err error) {
	var targets []volumebackup.Target
	for _, v := range r.volumes {
		if v.Archive != nil {
			own := (v.Create.Driver == "" || v.Create.Driver == "local") && len(v.Create.DriverOpts) == 0
			targets = append(targets, volumebackup.Target{
				Snapshot: string(r.id), Archive: v.Archive.Index, Root: v.Archive.Root, Volume: v.Create.Name, Origin: v.Original, Local: own,
			})
		}
	}
	if len(targets) == 0 {
		return nil
	}
	worker, err := cp.volumes.OpenWorker(ctx, volumebackup.WorkerOptions{Purpose: "check " + string(r.id), Task: volumebackup.Compare{}}, archives.Progress(p))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.Close()) }()
	var problems []plan.Problem
	for _, target := range targets {
		found, err := archives.Problem(target.Origin, worker.Check(ctx, target))
		if err != nil {
			return err
		}
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return &plan.ProblemsError{Problems: problems}
	}
	return nil
}
