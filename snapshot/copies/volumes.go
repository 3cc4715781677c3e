package copies

import (
	"context"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// An anonymous volume belongs to one container: docker rm -v and --rm remove it together with that.
// Only a volume that the engine makes and names while it creates the container is anonymous; a
// volume that exists can only be mounted by name, and the engine then keeps it. So a restore
// creates the container first, with mounts that have no source, asks the engine which volumes it
// has made, fills them, and then starts the container.

// named returns the volumes that are made before the container.
func (r restore) named() []runconfig.NewVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), runconfig.NewVolume.IsAnonymous)
}

// anonymous returns the volumes that the engine makes together with the container.
func (r restore) anonymous() []runconfig.NewVolume {
	return slices.DeleteFunc(slices.Clone(r.volumes), func(v runconfig.NewVolume) bool { return !v.IsAnonymous() })
}

// makeVolumes has a worker make the named volumes, and restores those that have an archive. The
// engine makes them together with the worker, whose label names them, so at no time are there
// volumes that nobody knows of. The result must be closed, even after an error.
//
// The worker of a fork bears the journal of all its copies, so a fork has one also without volumes.
func (cp *Copier) makeVolumes(ctx context.Context, all []restore, rollback *dockerop.Rollback, p plan.Progress) (*build.RestoredVolumes, error) {
	var named []runconfig.NewVolume
	for _, r := range all {
		named = append(named, r.named()...)
	}
	operation, id := all[0].operation, all[0].id
	if len(named) == 0 && !all[0].together {
		return nil, nil
	}
	p.Status("volumes", "creating volumes")
	o := volumebackup.WorkerOptions{Purpose: "restore " + string(id)}
	var needs volumebackup.Fill
	var targets []volumebackup.Target
	remove := cp.removeNewVolume
	for _, v := range named {
		o.Volumes, o.Make = append(o.Volumes, v.Create.Name), append(o.Make, v.Create)
		if v.Archive != nil {
			targets = append(targets, build.TargetOf(id, v, v.Create.Name, &needs))
		}
		rollback.Add(func(ctx context.Context) error { return remove(ctx, v.Create.Name, operation) })
	}
	o.Task = needs
	if len(targets) == 0 {
		o.Task = volumebackup.Hold{}
	}
	var err error
	if o.Journal, err = (pending.HalfMade{Operation: operation, Volumes: o.Volumes, Together: all[0].together}).Labels(); err != nil {
		return nil, err
	}
	worker, err := cp.volumes.OpenWorker(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	remove = cp.removeOwnVolume // by now the engine has written down the labels of what it has made
	if err := cp.checkOwnVolumes(ctx, o.Volumes, operation); err != nil {
		return &build.RestoredVolumes{Worker: worker}, err
	}
	if len(targets) == 0 {
		return &build.RestoredVolumes{Worker: worker}, nil
	}
	p.Status("volumes", "restoring volumes")
	results, err := worker.Apply(ctx, targets)
	return &build.RestoredVolumes{Worker: worker, Lost: build.AnySkipped(results)}, err
}
