package build

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// AnonymousNames are the names that the engine gave to the volumes that it made together
// with the container id, in the order of volumes.
func (b *Builder) AnonymousNames(ctx context.Context, id string, volumes []runconfig.NewVolume) ([]string, error) {
	found, _, err := b.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return nil, fmt.Errorf("inspect container %s: %w", id[:dockerop.ShortID], err)
	}
	names := make([]string, len(volumes))
	for i, v := range volumes {
		for _, point := range found.Mounts {
			if point.Type == mount.TypeVolume && point.Destination == v.Destination {
				names[i] = point.Name
			}
		}
		if names[i] == "" {
			return nil, fmt.Errorf("the engine made no volume for %s of container %s", v.Destination, id[:dockerop.ShortID])
		}
	}
	return names, nil
}

// FillAnonymous fills the volumes that the engine has made together with a container. o says
// more of the worker. What it returns, also with an error, must be closed; it is nil if
// there is nothing to fill.
func (b *Builder) FillAnonymous(ctx context.Context, id labels.ID, volumes []runconfig.NewVolume, names []string, o volumebackup.WorkerOptions, p plan.Progress) (*Filled, error) {
	var targets []volumebackup.Target
	var needs volumebackup.Fill
	for i, v := range volumes {
		if v.Archive != nil {
			targets = append(targets, TargetOf(v, names[i], &needs))
		}
	}
	if len(targets) == 0 {
		return nil, nil
	}
	o.Task = needs
	return b.FillVolumes(ctx, id, targets, o, p)
}

// TargetOf is how a worker restores the content of v into a volume of that name. What the
// content needs is added to the worker's rights.
func TargetOf(v runconfig.NewVolume, name string, needs *volumebackup.Fill) volumebackup.Target {
	needs.Devices = needs.Devices || v.Archive.Devices
	needs.Trusted = needs.Trusted || v.Archive.Trusted
	return volumebackup.Target{Archive: v.Archive.Index, Root: v.Archive.Root, Volume: name, Origin: v.Original}
}

// Filled are volumes in which something was restored.
type Filled struct {
	Worker archives.Worker
	Lost   bool // something could not be brought back
}

// IsIncomplete tells whether something could not be brought back. Nil had nothing to bring.
func (f *Filled) IsIncomplete() bool { return f != nil && f.Lost }

// Finish lets go of the volumes. If the copy that mounts them is whole, they are not for
// others to clear away from then on. What fails is a warning: the copy is there all the same.
func (f *Filled) Finish(ctx context.Context, isWhole bool, p plan.Progress) {
	if f == nil {
		return
	}
	if isWhole {
		if err := f.Worker.Release(context.WithoutCancel(ctx)); err != nil {
			p.Warn("create", err.Error())
		}
	}
	if err := f.Close(); err != nil {
		p.Warn("remove", err.Error())
	}
}

// Close lets go of the volumes. Nil had none.
func (f *Filled) Close() error {
	if f == nil {
		return nil
	}
	return f.Worker.Close()
}

// FillVolumes restores volumes that nobody else knows of yet, or that nobody uses, in
// a worker of which some options are given. What it returns, also with an error,
// must be closed.
func (b *Builder) FillVolumes(ctx context.Context, id labels.ID, targets []volumebackup.Target, o volumebackup.WorkerOptions, p plan.Progress) (*Filled, error) {
	p.Status("volumes", "restoring volumes")
	o.Purpose, o.Volumes = "restore "+string(id), volumeNames(targets)
	worker, err := b.volumes.OpenWorker(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	results, err := worker.Apply(ctx, string(id), targets)
	return &Filled{Worker: worker, Lost: AnySkipped(results)}, err
}

func volumeNames(targets []volumebackup.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Volume
	}
	return names
}

// AnySkipped tells whether the engine's kernel did not allow something.
func AnySkipped(results []volumebackup.RestoreResult) bool {
	return slices.ContainsFunc(results, func(r volumebackup.RestoreResult) bool { return r.Skipped > 0 })
}
