package snapshot

import (
	"errors"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
)

func remove(t *testing.T, docker *fakeDocker, word string) Snapshot {
	t.Helper()
	s, err := docker.engine().Remove(t.Context(), word, RemoveOptions{}, nil)
	assert.NilError(t, err)
	return s
}

func TestRemoveMovesLatestToTheNewestThatIsLeft(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:two", "web:three", "db:one")
	latest := func() string {
		s, err := docker.engine().Resolve(t.Context(), "web:latest")
		if cerrdefs.IsNotFound(err) {
			return "none"
		}
		assert.NilError(t, err)
		return s.Name
	}
	assert.Equal(t, remove(t, docker, "web:one").ID, made[0].ID)
	assert.Equal(t, latest(), "three")
	remove(t, docker, "three")
	assert.Equal(t, latest(), "two")
	remove(t, docker, "web:latest")
	assert.Equal(t, latest(), "none")
	assert.Assert(t, !strings.Contains(docker.world(), "cua-snapshot/web"))
	assert.Assert(t, strings.Contains(docker.world(), "cua-snapshot/db"))
}

func TestRemoveByAnyWordRemovesEveryTag(t *testing.T) {
	for name, word := range map[string]func(Snapshot) string{
		"name":      func(s Snapshot) string { return s.Name },
		"reference": func(Snapshot) string { return "web:one" },
		"ID":        func(s Snapshot) string { return string(s.ID) },
		"prefix":    func(s Snapshot) string { return string(s.ID)[:16] },
		"image":     func(s Snapshot) string { return s.Ref() },
	} {
		t.Run(name, func(t *testing.T) {
			docker, made := withSnapshots(t, "web:one")
			remove(t, docker, word(made[0]))
			assert.Assert(t, !strings.Contains(docker.world(), "cua-snapshot"), docker.world())
			assert.Equal(t, len(docker.images), 1)
		})
	}
}

func TestRemoveRefuses(t *testing.T) {
	docker, made := withSnapshots(t, "web:one", "web:pinned")
	assert.NilError(t, docker.ImageTag(t.Context(), made[1].ImageID, "cua-snapshot/web:pinned"))
	docker.findImage(made[1].ImageID).config.Labels["cua.snapshot.pinned"] = "true"
	docker.create(t, "zebra", &container.Config{Image: made[0].Ref()}, &container.HostConfig{})
	docker.create(t, "ape", &container.Config{Image: made[0].ImageID}, &container.HostConfig{})
	before := docker.world()

	_, err := docker.engine().Remove(t.Context(), "one", RemoveOptions{Force: true}, nil)
	var used *InUseError
	assert.Assert(t, errors.As(err, &used), "%v", err)
	assert.DeepEqual(t, used.Containers, []string{"ape", "zebra"})
	assert.Error(t, err, "snapshot "+string(made[0].ID)+" is used by container ape, zebra")
	assert.Assert(t, cerrdefs.IsConflict(err))

	_, err = docker.engine().Remove(t.Context(), "pinned", RemoveOptions{}, nil)
	assert.Error(t, err, "snapshot "+string(made[1].ID)+" is pinned")
	assert.Assert(t, cerrdefs.IsFailedPrecondition(err))
	_, err = docker.engine().Remove(t.Context(), "gone", RemoveOptions{}, nil)
	assert.Assert(t, cerrdefs.IsNotFound(err))
	assert.Equal(t, docker.world(), before)

	_, err = docker.engine().Remove(t.Context(), "pinned", RemoveOptions{Force: true}, nil)
	assert.NilError(t, err)
	assert.Assert(t, !strings.Contains(docker.world(), "pinned"))
}

// A snapshot of a restored copy stands on the one that it was restored from.
func TestRemoveInAnyOrderLeavesNoImageBehind(t *testing.T) {
	for name, order := range map[string][]string{"oldest first": {"old", "young"}, "youngest first": {"young", "old"}} {
		t.Run(name, func(t *testing.T) {
			docker, _ := withSnapshots(t, "web:old")
			restore1(t, docker, RestoreOptions{Snapshot: "old", Name: "copy"})
			snapshotOf(t, docker, CreateOptions{Container: "copy", Name: "young"})
			assert.NilError(t, docker.ContainerRemove(t.Context(), "copy", container.RemoveOptions{Force: true}))
			for _, word := range order {
				remove(t, docker, word)
			}
			assert.Equal(t, len(docker.images), 1, docker.world())
		})
	}
}

// What others built FROM a snapshot is theirs, and stays.
func TestRemoveLeavesImagesThatWereBuiltFromIt(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	child := docker.addImage("mine:latest", &container.Config{Labels: docker.findImage(made[0].ImageID).config.Labels})
	child.parent = made[0].ImageID
	docker.create(t, "user", &container.Config{Image: "mine", Cmd: []string{"x"}}, &container.HostConfig{})
	remove(t, docker, "one")
	assert.Assert(t, docker.findImage("mine") != nil)
	assert.Assert(t, !strings.Contains(docker.world(), "cua-snapshot"))
}
