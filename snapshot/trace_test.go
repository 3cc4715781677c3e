package snapshot

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestRestoresAreTracked(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).State = "running"
	one := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	none, err := engineOf(docker).RestoresOf(t.Context(), one)
	assert.NilError(t, err)
	assert.Equal(t, len(none), 0)

	restored, _ := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy"})
	docker.Clock = docker.Clock.Add(time.Hour)
	replaced, err := engineCounting(docker, 50).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
	assert.NilError(t, err)
	first := replaced.Safety.ID
	docker.Clock = docker.Clock.Add(time.Hour)
	replaced, err = engineCounting(docker, 90).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}, NoSafety: true}, nil)
	assert.NilError(t, err)

	found, err := engineOf(docker).RestoresOf(t.Context(), one)
	assert.NilError(t, err)
	want := []catalog.Restore{
		{Container: "web", ContainerID: replaced.ContainerID, InPlace: true},
		{Container: "web", InPlace: true, Safety: first},
		{Container: "copy", ContainerID: restored.ContainerID},
	}
	for i := range found {
		assert.Equal(t, found[i].Snapshot, one.ID)
		assert.Assert(t, !found[i].At.IsZero())
		found[i].Snapshot, found[i].At = "", time.Time{}
	}
	assert.DeepEqual(t, found, want)

	for _, c := range []string{"web", "copy"} {
		at, err := time.Parse(time.RFC3339Nano, docker.FindContainer(c).Config.Labels[labels.KeyRestoredAt])
		assert.NilError(t, err, c)
		assert.Assert(t, !at.After(docker.Clock), c)
	}
	for _, v := range docker.Volumes {
		assert.Equal(t, v.Labels[labels.KeyRestoredAt] != "", v.Labels[labels.KeyRestoredFrom] != "", v.Name)
	}
}

func TestHistoryHasSnapshotsRestoresAndWhereContainersStand(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).State = "running"
	docker.Create(t, "db", &container.Config{}, &container.HostConfig{}).State = "running"
	one := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	snapshotOf(t, docker, capture.Options{Container: "db", Name: "other"})
	replaced, err := engineCounting(docker, 90).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
	assert.NilError(t, err)

	h, err := engineOf(docker).History(t.Context(), catalog.ListOptions{Container: "web"}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(h), 3)
	assert.Equal(t, h[0].Restore.Snapshot, one.ID)
	assert.Equal(t, h[0].Follows, 2)
	assert.Equal(t, h[0].Here[0].ID, replaced.ContainerID)
	assert.Equal(t, h[1].Snapshot.Restores, one.ID)
	assert.Equal(t, h[1].Follows, 2)
	assert.Equal(t, h[2].Snapshot.ID, one.ID)

	all, err := engineOf(docker).History(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 4)
	_, err = engineOf(docker).History(t.Context(), catalog.ListOptions{Container: "nobody"}, nil)
	assert.ErrorContains(t, err, "nobody")
}
