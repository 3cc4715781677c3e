package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// AnonymousNames returns the names that the engine gave to the anonymous volumes of container id,
// in the order of volumes.
func (b *Builder) AnonymousNames(ctx context.Context, id string, volumes []runconfig.NewVolume) ([]string, error) {
	found, _, err := b.docker.ContainerInspectWithRaw(ctx, id, false)
	if err != nil {
		return nil, fmt.Errorf("inspect container %s: %w", id[:dockerop.ShortID], err)
	}
	names := make([]string, len(volumes))
	for i, v := range volumes {
		for _, point := range found.Mounts {
			if point.Type == mount.TypeVolume && point.Destination == v.Destination && !runconfig.NamesVolume(found.HostConfig, point.Name) {
				names[i] = point.Name
			}
		}
		if names[i] == "" {
			return nil, fmt.Errorf("the engine made no volume for %s of container %s", v.Destination, id[:dockerop.ShortID])
		}
	}
	return names, nil
}

// FillAnonymous restores the anonymous volumes that the engine made together with a container;
// names are theirs. o may set more about the worker. The result must be closed, even after an
// error. It is nil if no volume has content to restore.
func (b *Builder) FillAnonymous(ctx context.Context, id labels.ID, volumes []runconfig.NewVolume, names []string, o volumebackup.WorkerOptions, p plan.Progress) (*RestoredVolumes, error) {
	var targets []volumebackup.Target
	var needs volumebackup.Fill
	for i, v := range volumes {
		if v.Archive != nil {
			targets = append(targets, TargetOf(id, v, names[i], &needs))
		}
	}
	if len(targets) == 0 {
		return nil, nil
	}
	o.Task = needs
	return b.FillVolumes(ctx, targets, o, p)
}

// TargetOf says how a worker restores the content that snapshot id holds of v into the volume name. It
// adds to needs what the worker must be allowed for that.
func TargetOf(id labels.ID, v runconfig.NewVolume, name string, needs *volumebackup.Fill) volumebackup.Target {
	needs.Devices = needs.Devices || v.Archive.Devices
	needs.Trusted = needs.Trusted || v.Archive.Trusted
	return volumebackup.Target{Snapshot: string(id), Archive: v.Archive.Index, Root: v.Archive.Root, Volume: name, Origin: v.Original}
}

// RestoredVolumes are volumes that a worker has restored and still mounts. Nil means that there
// were none.
type RestoredVolumes struct {
	Worker archives.Worker
	Lost   bool // the engine's kernel did not allow to restore everything
}

// IsIncomplete tells whether something could not be restored.
func (r *RestoredVolumes) IsIncomplete() bool { return r != nil && r.Lost }

// End ends the worker. A failure is only a warning, because the copy is there all the same, or its restore has failed already.
func (r *RestoredVolumes) End(p plan.Progress) {
	if err := r.Close(); err != nil {
		p.Warn("remove", err.Error())
	}
}

// Settle makes the operation count as over, so that nobody clears away what it has made. It waits for an engine that cannot be
// reached, and fails if somebody clears up already.
func (r *RestoredVolumes) Settle(ctx context.Context) error {
	if r == nil {
		return nil
	}
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	var said error
	err := dockerop.Poll(ctx, func() (bool, error) {
		said = r.Worker.Release(ctx)
		if client.IsErrConnectionFailed(said) {
			return false, nil
		}
		return true, said
	})
	if err != nil {
		return fmt.Errorf("settle restore: %w", said)
	}
	return nil
}

// Close ends the worker.
func (r *RestoredVolumes) Close() error {
	if r == nil {
		return nil
	}
	return r.Worker.Close()
}

// FillVolumes restores volumes that nobody uses. o may set more about the worker. The result must
// be closed, even after an error.
func (b *Builder) FillVolumes(ctx context.Context, targets []volumebackup.Target, o volumebackup.WorkerOptions, p plan.Progress) (*RestoredVolumes, error) {
	p.Status("volumes", "restoring volumes")
	var snapshots []string
	for _, t := range targets {
		o.Volumes = append(o.Volumes, t.Volume)
		snapshots = append(snapshots, t.Snapshot)
	}
	o.Purpose = "restore " + strings.Join(dockerop.Distinct(snapshots), " ")
	worker, err := b.volumes.OpenWorker(ctx, o, archives.Progress(p))
	if err != nil {
		return nil, err
	}
	results, err := worker.Apply(ctx, targets)
	return &RestoredVolumes{Worker: worker, Lost: AnySkipped(results)}, err
}

// AnySkipped tells whether the engine's kernel did not allow to restore everything.
func AnySkipped(results []volumebackup.RestoreResult) bool {
	return slices.ContainsFunc(results, func(r volumebackup.RestoreResult) bool { return r.Skipped > 0 })
}
