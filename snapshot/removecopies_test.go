package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withVolumesCaptured is a world in which web has a named and an anonymous volume, and a snapshot.
func withVolumesCaptured(t *testing.T, docker *enginetest.Docker) {
	t.Helper()
	c := docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Binds: []string{"data:/data"}})
	assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
}

// copyOf makes a copy of the snapshot.
func copyOf(t *testing.T, docker *enginetest.Docker, name string, start runconfig.Start) {
	t.Helper()
	docker.Randomness += 10
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "one", Name: name, Start: start}, nil)
	assert.NilError(t, err)
}

func TestRemoveCopiesRemovesWhatRestoresMadeAndNothingElse(t *testing.T) {
	docker := enginetest.New()
	withVolumesCaptured(t, docker)
	_, err := engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "one"}, NoSafety: true}, nil)
	assert.NilError(t, err) // restored in place, which is no copy
	before := docker.World()
	copyOf(t, docker, "copy", runconfig.StartNever)
	copyOf(t, docker, "other", runconfig.StartNever)

	got := engineOf(docker).RemoveCopies(t.Context(), []string{"one"}, false, nil)
	assert.NilError(t, got[0].Err)
	assert.DeepEqual(t, got[0].Containers, []string{"copy", "other"})
	assert.Equal(t, len(got[0].Volumes), 2)
	assert.Equal(t, docker.World(), before)

	got = engineOf(docker).RemoveCopies(t.Context(), []string{"one", "gone"}, false, nil)
	assert.NilError(t, got[0].Err)
	assert.Equal(t, len(got[0].Containers)+len(got[0].Volumes), 0)
	assert.ErrorContains(t, got[1].Err, "no such snapshot: gone")
}

func TestRemoveCopiesRefusesWhatIsInUse(t *testing.T) {
	docker := enginetest.New()
	withVolumesCaptured(t, docker)
	copyOf(t, docker, "copy", runconfig.StartAlways)
	copyOf(t, docker, "other", runconfig.StartNever)
	volume := docker.FindContainer("copy").Mounts[0].Name
	for _, m := range docker.FindContainer("copy").Mounts {
		if strings.HasPrefix(m.Name, "data-") {
			volume = m.Name
		}
	}
	docker.Create(t, "reader", &container.Config{}, &container.HostConfig{Binds: []string{volume + ":/data"}})
	before := docker.World()

	got := engineOf(docker).RemoveCopies(t.Context(), []string{"one"}, false, nil)
	used, ok := errors.AsType[*copies.InUseError](got[0].Err)
	assert.Assert(t, ok, "%v", got[0].Err)
	assert.DeepEqual(t, used.Containers, []string{"copy"})
	assert.DeepEqual(t, used.Volumes, []string{"volume " + volume + " is mounted by container reader"})
	assert.Equal(t, docker.World(), before)

	var events enginetest.Events
	got = engineOf(docker).RemoveCopies(t.Context(), []string{"one"}, true, events.Progress)
	assert.NilError(t, got[0].Err)
	assert.DeepEqual(t, got[0].Containers, []string{"copy", "other"})
	assert.Equal(t, len(got[0].Volumes), 1)
	assert.DeepEqual(t, events.Warnings(), []string{"volume " + volume + " stays: container reader mounts it"})
	assert.Assert(t, docker.FindContainer("web") != nil && docker.FindContainer("reader") != nil)
	assert.Assert(t, docker.FindVolume(volume) != nil)
}

// The snapshot may be gone, and its copies are found by its ID.
func TestRemoveCopiesOfASnapshotThatIsGone(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	copyOf(t, docker, "copy", runconfig.StartNever)
	docker.AddImage("committed:latest", &container.Config{Cmd: []string{"x"}, Labels: map[string]string{labels.KeyCopyOf: string(made[0].ID)}})
	docker.Create(t, "by-hand", &container.Config{Image: "committed"}, &container.HostConfig{})
	assert.NilError(t, engineOf(docker).Remove(t.Context(), []string{"web:one"}, removal.Options{}, nil)[0].Err)
	got := engineOf(docker).RemoveCopies(t.Context(), []string{string(made[0].ID)}, false, nil)
	assert.NilError(t, got[0].Err)
	assert.DeepEqual(t, got[0].Containers, []string{"copy"})
	assert.Assert(t, docker.FindContainer("by-hand") != nil)
}

func TestRemoveCopiesTouchesNothingElseWhateverGoesWrong(t *testing.T) {
	var original string
	prepare := func(t *testing.T, docker *enginetest.Docker) {
		t.Helper()
		withVolumesCaptured(t, docker)
		original = containersOf(docker.World())
		copyOf(t, docker, "copy", runconfig.StartAlways)
	}
	operate := func(ctx context.Context, e *Engine) error {
		return e.RemoveCopies(ctx, []string{"web:one"}, true, nil)[0].Err
	}
	withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o enginetest.Outcome) {
		if o.Err == nil {
			assert.Assert(t, o.Docker.FindContainer("copy") == nil)
		}
		assert.NilError(t, operate(t.Context(), engineOf(o.Docker))) // again, when the cause is gone
		assert.Assert(t, o.Docker.FindContainer("copy") == nil)
		assert.Equal(t, o.Docker.FindContainer("web").State, "running")
		assert.Equal(t, containersOf(o.Docker.World()), original, "more or less than the copy is gone")
	})
}
