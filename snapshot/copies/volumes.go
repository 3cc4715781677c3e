package copies

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// makeVolumes has a worker make the named volumes, and fills those that have an archive.
// The engine makes them together with the worker, whose label names them: at no
// time there are any that nobody knows of. What it returns, also with an error,
// must be closed.
func (cp *Copier) makeVolumes(ctx context.Context, r restore, rollback *dockerop.Rollback, p plan.Progress) (*build.Filled, error) {
	named := r.named()
	if len(named) == 0 {
		return nil, nil
	}
	p.Status("volumes", "creating volumes")
	o := volumebackup.WorkerOptions{Purpose: "restore " + string(r.id)}
	var needs volumebackup.Fill
	var targets []volumebackup.Target
	for _, v := range named {
		o.Volumes, o.Make = append(o.Volumes, v.Create.Name), append(o.Make, v.Create)
		if v.Archive != nil {
			targets = append(targets, build.TargetOf(v, v.Create.Name, &needs))
		}
		rollback.Add(func(ctx context.Context) error { return cp.removeOwnVolume(ctx, v.Create.Name, r.operation) })
	}
	o.Task = needs
	if len(targets) == 0 {
		o.Task = volumebackup.Hold{}
	}
	var err error
	if o.Journal, err = (pending.HalfMade{Operation: r.operation, Volumes: o.Volumes}).Labels(); err != nil {
		return nil, err
	}
	worker, err := cp.volumes.OpenWorker(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	if err := cp.checkOwnVolumes(ctx, o.Volumes, r.operation); err != nil {
		return &build.Filled{Worker: worker}, err
	}
	p.Status("volumes", "restoring volumes")
	results, err := worker.Apply(ctx, string(r.id), targets)
	return &build.Filled{Worker: worker, Lost: build.AnySkipped(results)}, err
}
