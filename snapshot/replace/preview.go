package replace

import (
	"context"
	"errors"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// preview returns what a restore in place would do, or every problem with it. It makes only a
// worker that cannot write.
func (t *transaction) preview(ctx context.Context) (Result, error) {
	problems, err := t.previewVolumes(ctx)
	if problems = append(t.Plan.problems, problems...); len(problems) > 0 {
		return Result{}, errors.Join(&plan.ProblemsError{Problems: problems}, err)
	}
	if err != nil {
		return Result{}, err
	}
	t.watch.Lap("check")
	t.close()
	result := t.Summary()
	result.Timings = t.watch.Done()
	return result, nil
}

// previewVolumes checks the archives, and compares the volumes with them.
func (t *transaction) previewVolumes(ctx context.Context) (problems []plan.Problem, err error) {
	var targets, present []volumebackup.Target
	var names []string
	for _, target := range t.targets() {
		targets = append(targets, target)
		if t.Plan.exists(target.Volume) {
			present, names = append(present, target), append(names, target.Volume)
		}
	}
	if len(targets) == 0 {
		t.changes = t.Plan.changes(nil, nil)
		return nil, nil
	}
	t.worker, err = t.engine.volumes.OpenWorker(ctx, volumebackup.WorkerOptions{
		Purpose: "look at " + string(t.Plan.Snapshot.ID), Volumes: names, Task: volumebackup.Compare{},
	}, archives.Progress(t.p))
	if err != nil {
		return nil, err
	}
	problems, err = t.checkArchives(ctx, targets)
	if err != nil || len(problems)+len(t.Plan.problems) > 0 {
		return problems, err
	}
	results := make([]volumebackup.RestoreResult, len(present))
	for i, target := range present {
		planned, err := t.worker.Plan(ctx, string(t.Plan.Snapshot.ID), []volumebackup.Target{target})
		if err == nil {
			results[i] = planned[0]
		}
		found, err := archives.Problem(target.Volume, err)
		if err != nil {
			return problems, err
		}
		problems = append(problems, found...)
	}
	t.changes = t.Plan.changes(present, results)
	return problems, nil
}

func (r *replacement) exists(volume string) bool {
	return slices.ContainsFunc(r.Volumes, func(v runconfig.PlacedVolume) bool { return v.Create.Name == volume && v.Exists })
}

// changes lists what a restore did, or would do, to each volume.
func (r *replacement) changes(targets []volumebackup.Target, results []volumebackup.RestoreResult) []VolumeChange {
	var changes []VolumeChange
	for _, v := range r.Volumes {
		at := slices.IndexFunc(targets, func(target volumebackup.Target) bool { return target.Volume == v.Create.Name })
		switch {
		case v.Kept != "":
			changes = append(changes, VolumeChange{Volume: v.Create.Name, Kept: v.Kept})
		case !v.Exists:
			changes = append(changes, madeVolume(v))
		case at >= 0:
			result := results[at]
			changes = append(changes, VolumeChange{
				Volume: v.Create.Name, Created: Count(result.Created), Changed: Count(result.Changed), Deleted: Count(result.Deleted),
			})
		}
	}
	return changes
}

// madeVolume is the change of a volume that is made.
func madeVolume(v runconfig.PlacedVolume) VolumeChange {
	c := VolumeChange{Volume: v.Create.Name, Made: true}
	if v.Archive != nil {
		c.Created = Count{Entries: v.Archive.Entries - 1, Bytes: v.Archive.Bytes} // the root is there
	}
	return c
}
