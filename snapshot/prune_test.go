package snapshot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// automatic takes so many automatic snapshots of a container, an hour apart, the oldest first.
func automatic(t *testing.T, docker *enginetest.Docker, name string, number int) (made []catalog.Snapshot) {
	t.Helper()
	for range number {
		docker.Clock = docker.Clock.Add(time.Hour)
		made = append(made, snapshotOf(t, docker, capture.Options{Container: name, Trigger: labels.TriggerInterval}))
	}
	return made
}

// keeping are the options that limit nothing but the number of snapshots of a container.
func keeping(number int) removal.PruneOptions {
	return removal.PruneOptions{Options: retention.Options{Limits: retention.Limits{KeepLast: &number}}}
}

func pruned(t *testing.T, docker *enginetest.Docker, o removal.PruneOptions, p plan.Progress) removal.Pruned {
	t.Helper()
	result, err := engineOf(docker).Prune(t.Context(), o, p)
	assert.NilError(t, err)
	for _, one := range result.All {
		assert.NilError(t, one.Err)
	}
	return result
}

// reasons says of each snapshot in made, in order, what became of it.
func reasons(result removal.Pruned, made []catalog.Snapshot) string {
	said := map[labels.ID]string{}
	for _, one := range result.All {
		said[one.Snapshot.ID] = string(one.Reason)
		if one.Removed {
			said[one.Snapshot.ID] = "-" + string(one.Reason)
		}
	}
	var all []string
	for _, s := range made {
		all = append(all, said[s.ID])
	}
	return strings.Join(all, ", ")
}

func withData(t *testing.T, names ...string) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	for _, name := range names {
		docker.Create(t, name, &container.Config{}, &container.HostConfig{Binds: []string{"data-" + name + ":/data"}})
	}
	return docker
}

func TestPruneRemovesTheOldestAndSaysWhatItFreed(t *testing.T) {
	docker := withData(t, "web", "db")
	made := append(automatic(t, docker, "web", 4), automatic(t, docker, "db", 2)...)
	dry := keeping(2)
	dry.DryRun = true
	before := docker.World()
	planned := pruned(t, docker, dry, nil)
	assert.Equal(t, reasons(planned, made), "-count, -count, within limits, newest, within limits, newest")
	assert.Equal(t, planned.Freed, int64(0))
	assert.Equal(t, docker.World(), before)

	result := pruned(t, docker, keeping(2), nil)
	assert.Equal(t, reasons(result, made), reasons(planned, made))
	assert.Equal(t, len(docker.Service.Archives), 4)
	for i, s := range made {
		assert.Equal(t, docker.FindImage(s.ImageID) == nil, i < 2)
	}
	again := pruned(t, docker, keeping(2), nil)
	assert.Equal(t, len(again.Removed()), 0)
	assert.Equal(t, len(again.All), 4)
}

func TestPruneFreesWhatTheStoreAndTheImagesFree(t *testing.T) {
	docker := withData(t, "web")
	made := automatic(t, docker, "web", 3)
	docker.Service.Freed = 1000
	for i, s := range made {
		docker.FindImage(s.ImageID).Files = strings.Repeat("x", 100*(i+1))
	}
	below := int64(len(docker.FindImage(made[0].Container.ImageID).Files))
	result := pruned(t, docker, keeping(1), nil)
	assert.Equal(t, result.Freed, 1000+(100-below)+(200-below))
}

// After a restore in place the container runs on the snapshot's image, and the safety snapshot takes
// that back.
func TestPruneKeepsWhatARestoreInPlaceNeeds(t *testing.T) {
	docker := withData(t, "web")
	made := automatic(t, docker, "web", 2)
	replaced, err := engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(made[0].ID)}}, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("web").Config.Labels[labels.KeyUndo], string(replaced.Safety.ID))
	made = append(append(made, *replaced.Safety), automatic(t, docker, "web", 2)...)
	assert.Equal(t, reasons(pruned(t, docker, keeping(1), nil), made), "in use, -count, undo, -count, newest")

	// The next restore has another one.
	replaced, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(made[2].ID)}}, nil)
	assert.NilError(t, err)
	made = append(append(made, *replaced.Safety), automatic(t, docker, "web", 1)...)
	assert.Equal(t, reasons(pruned(t, docker, keeping(1), nil), made), "-count, , in use, , -count, undo, newest")
}

// So is what takes a restore of volumes alone back, although no label of the container that is kept says so.
func TestPruneKeepsWhatARestoreOfVolumesNeeds(t *testing.T) {
	docker := withData(t, "web")
	made := automatic(t, docker, "web", 2)
	restore := func(id labels.ID) catalog.Snapshot {
		docker.Randomness += 50
		o := replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(id)}, Only: []string{"/data"}}
		replaced, err := engineOf(docker).Replace(t.Context(), o, nil)
		assert.NilError(t, err)
		return *replaced.Safety
	}
	made = append(append(made, restore(made[1].ID)), automatic(t, docker, "web", 2)...)
	assert.Equal(t, reasons(pruned(t, docker, keeping(1), nil), made), "-count, -count, undo, -count, newest")

	// The next restore has another one.
	made = append(append(made, restore(made[2].ID)), automatic(t, docker, "web", 1)...)
	assert.Equal(t, reasons(pruned(t, docker, keeping(1), nil), made), ", , -count, , -count, undo, newest")
}

func TestPruneKeepsWhatAnOperationNeeds(t *testing.T) {
	docker := withData(t, "web")
	made := automatic(t, docker, "web", 3)
	docker.Service.Worker("cua-snapshot-0123456789ab", map[string]string{volumebackup.LabelPurpose: "restore " + string(made[0].ID)}, nil, true)
	assert.Equal(t, reasons(pruned(t, docker, keeping(1), nil), made), "in use, -count, newest")
}

func TestPruneOfExpiredOnesTakesNamedAndManualOnes(t *testing.T) {
	docker := withData(t, "web")
	expires := docker.Clock.Add(time.Hour)
	made := []catalog.Snapshot{
		snapshotOf(t, docker, capture.Options{Container: "web", Name: "one", Expires: expires}),
		snapshotOf(t, docker, capture.Options{Container: "web", Expires: expires, Pinned: true}),
		snapshotOf(t, docker, capture.Options{Container: "web"}),
		snapshotOf(t, docker, capture.Options{Container: "web", Expires: expires}),
	}
	o := keeping(1)
	o.ExpiredOnly = true
	assert.Equal(t, reasons(pruned(t, docker, o, nil), made), "named, pinned, manual, newest")
	docker.Clock = expires
	assert.Equal(t, reasons(pruned(t, docker, o, nil), made), "-expired, pinned, newest, -expired")
	_, err := engineOf(docker).Resolve(t.Context(), "web:one")
	assert.ErrorContains(t, err, "no such snapshot")
}

func TestPruneRemovesOnlyWhatWasAgreed(t *testing.T) {
	docker := withData(t, "web")
	made := automatic(t, docker, "web", 4)
	o := keeping(1)
	o.DryRun = true
	shown := pruned(t, docker, o, nil)
	assert.Equal(t, len(shown.Removed()), 3)

	// Meanwhile somebody uses one, and one more is taken.
	docker.Create(t, "user", &container.Config{Image: made[0].Ref()}, &container.HostConfig{})
	made = append(made, automatic(t, docker, "web", 1)...)
	o.DryRun, o.Agreed = false, &shown
	assert.Equal(t, reasons(pruned(t, docker, o, nil), made), "in use, -count, -count, within limits, newest")
}

// The labels of a container count, and those that it had if it is gone.
func TestPruneGoesByTheLabelsOfContainers(t *testing.T) {
	for name, remove := range map[string]bool{"it is there": false, "it is gone": true} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			docker.Create(t, "web", &container.Config{Labels: map[string]string{"cua.snapshot.policy.keep": "1", "cua.snapshot.policy.retention": "soon"}}, &container.HostConfig{})
			docker.Create(t, "db", &container.Config{}, &container.HostConfig{})
			made := append(automatic(t, docker, "web", 2), automatic(t, docker, "db", 2)...)
			if remove {
				assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
			}
			var got enginetest.Events
			o := removal.PruneOptions{Options: retention.Options{Policy: retention.Default()}}
			assert.Equal(t, reasons(pruned(t, docker, o, got.Progress), made), "-count, newest, within limits, newest")
			assert.DeepEqual(t, got.Warnings(), []string{
				`container web: invalid value "soon" of label cua.snapshot.policy.retention: invalid duration "soon": use something like 90m, 36h, 1w2d`,
			})
		})
	}
}

func TestPruneMeasuresSharedContentOnce(t *testing.T) {
	docker := withData(t, "web")
	docker.FindVolume("data-web").Content = strings.Repeat("old", 1000)
	made := automatic(t, docker, "web", 2)
	docker.FindVolume("data-web").Content = strings.Repeat("new", 1000)
	made = append(made, automatic(t, docker, "web", 2)...)
	for _, tc := range []struct {
		most int64
		want string
	}{
		{6100, "within limits, within limits, within limits, newest"},
		{5900, "-size, -size, within limits, newest"},
	} {
		o := removal.PruneOptions{Options: retention.Options{Limits: retention.Limits{MaxSize: &tc.most}, DryRun: true}}
		assert.Equal(t, reasons(pruned(t, docker, o, nil), made), tc.want)
	}
}

// A store that is gone does not keep the limit on space from what the others hold.
func TestPruneLeavesOutAStoreThatCannotBeRead(t *testing.T) {
	docker := withMine(t, "id")
	docker.FindVolume("mine").Labels[labels.KeyStoreID] = "another"
	docker.FindVolume("data").Content = strings.Repeat("old", 1000)
	made := automatic(t, docker, "web", 2)
	docker.FindVolume("data").Content = strings.Repeat("new", 1000)
	made = append(made, automatic(t, docker, "web", 2)...)
	var got enginetest.Events
	o := removal.PruneOptions{Options: retention.Options{Limits: retention.Limits{MaxSize: new(int64(5900))}, DryRun: true}}
	assert.Equal(t, reasons(pruned(t, docker, o, got.Progress), made), "-size, -size, within limits, newest")
	assert.Equal(t, len(got.Warnings()), 1)
	assert.Assert(t, strings.HasPrefix(got.Warnings()[0], "what store mine holds is not counted: "), "%q", got.Warnings())
}

func TestPruneWithAFilterCountsOnlyWhatMatches(t *testing.T) {
	docker := withData(t, "web")
	made := automatic(t, docker, "web", 3)
	filter, err := catalog.ParseFilter([]string{"before=" + string(made[2].ID)}, docker.Clock)
	assert.NilError(t, err)
	o := keeping(1)
	o.Filter = filter
	assert.Equal(t, reasons(pruned(t, docker, o, nil), made), "-count, within limits, ")
}

// listsNoSession is an engine whose lists of images lack the sessions, as they may while one is written.
type listsNoSession struct{ *enginetest.Docker }

func (d listsNoSession) ImageList(ctx context.Context, o image.ListOptions) ([]image.Summary, error) {
	all, err := d.Docker.ImageList(ctx, o)
	return slices.DeleteFunc(all, func(one image.Summary) bool { return one.Labels[labels.KeySession] != "" }), err
}

func TestTheStartOfARunStaysAlsoIfTheRunIsNotListed(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	e := engineThrough(docker, listsNoSession{docker})
	prune := func(ctx context.Context, _ session.Session) (int, error) {
		sessions, err := e.Sessions(ctx)
		assert.NilError(t, err)
		assert.Equal(t, len(sessions), 0)
		_, err = e.Create(ctx, capture.Options{Container: "web", Trigger: labels.TriggerAfterAction}, nil)
		assert.NilError(t, err)
		pruned, err := e.Prune(ctx, keeping(1), nil)
		assert.NilError(t, err)
		assert.Equal(t, len(pruned.Removed()), 0)
		assert.Equal(t, pruned.All[1].Reason, retention.UnfinishedRun)
		return 0, nil
	}
	_, err := e.Run(t.Context(), runOf(retention.IntervalRunStart), prune, nil)
	assert.NilError(t, err)
}

func TestAnOutlookTellsWhatAPruneFreesAndChangesNothing(t *testing.T) {
	docker := withData(t, "web", "db")
	made := append(automatic(t, docker, "web", 4), automatic(t, docker, "db", 1)...)
	for i, s := range made {
		docker.FindImage(s.ImageID).Files = strings.Repeat("x", 100*(i+1))
	}
	filter, err := catalog.ParseFilter([]string{"container=web"}, docker.Clock)
	assert.NilError(t, err)
	before := docker.World()
	policy := retention.Policy{MaxSnapshots: 3, MaxTotal: 50}

	found, err := engineOf(docker).Outlook(t.Context(), removal.OutlookOptions{Policy: policy, Filter: filter, By: space.ByContainer}, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.World(), before)
	assert.Equal(t, found.All.Snapshots, 4)
	assert.Equal(t, found.Groups[0].Group, "web")
	assert.Equal(t, found.Prunable, 1)
	assert.DeepEqual(t, found.Uses, []retention.Use{
		{Limit: retention.NameMaxSnapshots, Line: "db", Used: 1, Most: 3},
		{Limit: retention.NameMaxSnapshots, Line: "web", Used: 4, Most: 3},
		{Limit: retention.NameMaxTotal, Used: 5, Most: 50},
	})

	result := pruned(t, docker, removal.PruneOptions{Options: retention.Options{Policy: policy}}, nil)
	assert.Equal(t, len(result.Removed()), found.Prunable)
	assert.Equal(t, result.Freed-docker.Service.Freed, found.Frees)
}

// A line keeps its last states at any age, and with any number of lines. The options of a prune apply to them.
func TestLimitsOfContainersLeaveStates(t *testing.T) {
	docker := withData(t, "web")
	for range 3 {
		docker.Clock = docker.Clock.Add(time.Hour)
		snapshotOf(t, docker, capture.Options{Line: "modes", Trigger: labels.TriggerEvent})
	}
	docker.Clock = docker.Clock.Add(30 * 24 * time.Hour)
	automatic(t, docker, "web", 2)
	policy := retention.Default()
	policy.MaxSnapshots, policy.MaxTotal = 1, 2
	result := pruned(t, docker, removal.PruneOptions{Options: retention.Options{Policy: policy}}, nil)
	assert.Equal(t, len(result.Removed()), 1)
	assert.Equal(t, result.Removed()[0].Snapshot.Container.Name, "web")
	age := 24 * time.Hour
	result = pruned(t, docker, removal.PruneOptions{Options: retention.Options{Policy: policy, Limits: retention.Limits{OlderThan: &age}}}, nil)
	assert.Equal(t, len(result.Removed()), 2) // the newest stays
}
