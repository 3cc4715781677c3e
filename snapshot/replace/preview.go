package replace

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// preview returns what a restore in place would do, or every problem with it: those that are known, and
// those with the archives. It makes only a worker that cannot write.
func (t *transaction) preview(ctx context.Context, known []plan.Problem) ([]Result, error) {
	problems, err := t.previewVolumes(ctx, len(known) > 0)
	if problems = append(known, problems...); len(problems) > 0 {
		return nil, errors.Join(t.refuse(problems), err)
	}
	if err != nil {
		return nil, err
	}
	t.watch.Lap("check")
	t.close()
	return t.results(), nil
}

// previewVolumes checks the archives and, unless there are problems already, compares the volumes
// with them.
func (t *transaction) previewVolumes(ctx context.Context, checkOnly bool) (problems []plan.Problem, err error) {
	var present []volumebackup.Target
	var names []string
	targets := t.targets()
	for _, target := range targets {
		if t.exists(target.Volume) {
			present, names = append(present, target), append(names, target.Volume)
		}
	}
	if len(targets) == 0 {
		t.noteChanges(nil, nil)
		return nil, nil
	}
	t.worker, err = t.engine.volumes.OpenWorker(ctx, volumebackup.WorkerOptions{
		Purpose: "look at " + t.snapshots(), Volumes: names, Task: volumebackup.Compare{},
	}, archives.Progress(t.p))
	if err != nil {
		return nil, err
	}
	problems, err = t.checkArchives(ctx, targets)
	if err != nil || len(problems) > 0 || checkOnly {
		return problems, err
	}
	results := make([]volumebackup.RestoreResult, len(present))
	for i, target := range present {
		planned, err := t.worker.Plan(ctx, []volumebackup.Target{target})
		if err == nil {
			results[i] = planned[0]
		}
		found, err := archives.Problem(target.Volume, err)
		if err != nil {
			return problems, err
		}
		problems = append(problems, found...)
	}
	t.noteChanges(present, results)
	return problems, nil
}

// snapshots are the IDs of what is restored.
func (g *group) snapshots() string {
	ids := make([]string, len(g.members))
	for i, m := range g.members {
		ids[i] = string(m.Snapshot.ID)
	}
	return strings.Join(ids, " ")
}

func (g *group) exists(volume string) bool {
	return slices.ContainsFunc(g.members, func(m *member) bool {
		return slices.ContainsFunc(m.Volumes, func(v runconfig.PlacedVolume) bool { return v.Create.Name == volume && v.Exists })
	})
}

// changed lists what a restore did, or would do, to each volume.
func (m *member) changed(targets []volumebackup.Target, results []volumebackup.RestoreResult) []VolumeChange {
	var changes []VolumeChange
	for _, v := range m.Volumes {
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
