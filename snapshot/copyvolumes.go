package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// targetOf is how a worker restores the content of v into a volume of that name. What the
// content needs is added to the worker's rights.
func targetOf(v runconfig.NewVolume, name string, needs *volumebackup.Fill) volumebackup.Target {
	needs.Devices = needs.Devices || v.Archive.Devices
	needs.Trusted = needs.Trusted || v.Archive.Trusted
	return volumebackup.Target{Archive: v.Archive.Index, Root: v.Archive.Root, Volume: name, Origin: v.Original}
}

// filled are volumes in which something was restored.
type filled struct {
	worker archives.Worker
	lost   bool // something could not be brought back
}

// isIncomplete tells whether something could not be brought back. Nil had nothing to bring.
func (f *filled) isIncomplete() bool { return f != nil && f.lost }

// finish lets go of the volumes. If the copy that mounts them is whole, they are not for
// others to clear away from then on. What fails is a warning: the copy is there all the same.
func (f *filled) finish(ctx context.Context, isWhole bool, p plan.Progress) {
	if f == nil {
		return
	}
	if isWhole {
		if err := f.worker.Release(context.WithoutCancel(ctx)); err != nil {
			p.Warn("create", err.Error())
		}
	}
	if err := f.close(); err != nil {
		p.Warn("remove", err.Error())
	}
}

// close lets go of the volumes. Nil had none.
func (f *filled) close() error {
	if f == nil {
		return nil
	}
	return f.worker.Close()
}

// makeVolumes has a worker make the named volumes, and fills those that have an archive.
// The engine makes them together with the worker, whose label names them: at no
// time there are any that nobody knows of. What it returns, also with an error,
// must be closed.
func (e *Engine) makeVolumes(ctx context.Context, r restore, u *dockerop.Undo, p plan.Progress) (*filled, error) {
	named := r.named()
	if len(named) == 0 {
		return nil, nil
	}
	if e.volumes == nil {
		return nil, errors.New("nothing here can restore volumes")
	}
	p.Status("volumes", "creating volumes")
	o := volumebackup.RestoreOptions{Purpose: "restore " + string(r.id), Fill: &volumebackup.Fill{}}
	var targets []volumebackup.Target
	for _, v := range named {
		o.Volumes, o.Make = append(o.Volumes, v.Create.Name), append(o.Make, v.Create)
		if v.Archive != nil {
			targets = append(targets, targetOf(v, v.Create.Name, o.Fill))
		}
		u.Add(func(ctx context.Context) error { return e.removeOwnVolume(ctx, v.Create.Name, r.operation) })
	}
	o.Idle = len(targets) == 0
	var err error
	if o.Journal, err = (pending.HalfMade{Operation: r.operation, Volumes: o.Volumes}).Labels(); err != nil {
		return nil, err
	}
	worker, err := e.volumes.OpenRestore(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	if err := e.checkOwnVolumes(ctx, o.Volumes, r.operation); err != nil {
		return &filled{worker: worker}, err
	}
	p.Status("volumes", "restoring volumes")
	results, err := worker.Apply(ctx, string(r.id), targets)
	return &filled{worker: worker, lost: anySkipped(results)}, err
}

// fillVolumes restores volumes that nobody else knows of yet, or that nobody uses, in
// a worker of which some options are given. What it returns, also with an error,
// must be closed.
func (e *Engine) fillVolumes(ctx context.Context, id labels.ID, targets []volumebackup.Target, o volumebackup.RestoreOptions, p plan.Progress) (*filled, error) {
	p.Status("volumes", "restoring volumes")
	o.Purpose, o.Volumes = "restore "+string(id), volumeNames(targets)
	worker, err := e.volumes.OpenRestore(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	results, err := worker.Apply(ctx, string(id), targets)
	return &filled{worker: worker, lost: anySkipped(results)}, err
}

func volumeNames(targets []volumebackup.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Volume
	}
	return names
}

// anySkipped tells whether the engine's kernel did not allow something.
func anySkipped(results []volumebackup.RestoreResult) bool {
	return slices.ContainsFunc(results, func(r volumebackup.RestoreResult) bool { return r.Skipped > 0 })
}
