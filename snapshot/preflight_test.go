package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// When the container is gone whose network was shared, only its ID would be left.
func TestWhoIsGoneIsNamed(t *testing.T) {
	docker := enginetest.New()
	side := docker.Run(t, "side")
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{NetworkMode: container.NetworkMode("container:" + side.ID)})
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	assert.NilError(t, docker.ContainerRemove(t.Context(), "side", container.RemoveOptions{Force: true}))
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one"}, nil)
	assert.Error(t, err, "cannot restore:\n  this container uses the network of side, which is gone")
	unnamed := runconfig.Spec{Host: container.HostConfig{NetworkMode: container.NetworkMode("container:" + side.ID)}}
	assert.Equal(t, unnamed.Needs(side.ID), "this container uses the network of "+side.ID[:dockerop.ShortID])
}

// findVowel finds vowels.
func findVowel(_ context.Context, name string) error {
	switch {
	case name == "broken":
		return errors.New("broken")
	case strings.Contains("aeiou", name):
		return nil
	}
	return cerrdefs.ErrNotFound
}

func TestAbsent(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	gone, err := dockerop.Absent(t.Context(), names, findVowel)
	assert.NilError(t, err)
	assert.DeepEqual(t, gone, map[string]bool{"b": true, "c": true, "d": true, "f": true, "g": true, "h": true, "j": true})
	_, err = dockerop.Absent(t.Context(), append(names, "broken"), findVowel)
	assert.ErrorContains(t, err, "broken")
}
