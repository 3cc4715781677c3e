package snapshot

import (
	"errors"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withReadOnly is withTwo, and a container viewer that only reads the volume of web, of
// which there is a snapshot viewer:one.
func withReadOnly(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	for name, bind := range map[string]string{"web": "data:/data", "viewer": "data:/data:ro"} {
		c := docker.Create(t, name, &container.Config{}, &container.HostConfig{Binds: []string{bind}})
		assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
	}
	docker.FindVolume("data").Content = "one"
	snapshotOf(t, docker, capture.Options{Container: "viewer", Name: "one"})
	docker.FindVolume("data").Content = "two"
	docker.Randomness = 100
	return docker
}

// A volume that the restored container only reads belongs to who writes it: it is not
// rewound under that one, unless it is named.
func TestAVolumeThatIsOnlyReadIsLeftAloneUnlessItIsNamed(t *testing.T) {
	options := replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "viewer:one", Waiting: runconfig.Waiting{Wait: true}}}
	t.Run("left alone", func(t *testing.T) {
		docker := withReadOnly(t)
		dry := options
		dry.DryRun = true
		planned, err := engineOf(docker).Replace(t.Context(), dry, nil)
		assert.NilError(t, err)
		kept := []replace.VolumeChange{{Volume: "data", Kept: "the container only reads it, and it was not named"}}
		assert.DeepEqual(t, planned.Volumes, kept)
		assert.Assert(t, is.Contains(planned.Plan.String(), "leave out data (the container only reads it, and it was not named; the volume is kept as it is)"))
		var got enginetest.Events
		done, err := engineOf(docker).Replace(t.Context(), options, got.Progress)
		assert.NilError(t, err)
		assert.DeepEqual(t, done.Volumes, kept)
		assert.Equal(t, len(done.Others), 0)
		assert.Assert(t, is.Contains(strings.Join(got.Warnings(), "\n"), "leave out data (the container only reads it"))
		assert.Equal(t, docker.Data(), "two")
		assert.Equal(t, docker.FindContainer("web").State, "running")
	})
	t.Run("named", func(t *testing.T) {
		docker := withReadOnly(t)
		named := options
		named.ReadOnly = []string{"data"}
		_, err := engineOf(docker).Replace(t.Context(), named, nil)
		assert.ErrorContains(t, err, "volume data is in use by container web")
		named.StopOthers = true
		_, err = engineOf(docker).Replace(t.Context(), named, nil)
		assert.NilError(t, err)
		assert.Equal(t, docker.Data(), "one")
		assert.Equal(t, docker.FindContainer("web").State, "running")
	})
	t.Run("a name that it does not have", func(t *testing.T) {
		docker := withReadOnly(t)
		named := options
		named.ReadOnly = []string{"date"}
		_, err := engineOf(docker).Replace(t.Context(), named, nil)
		assert.ErrorContains(t, err, "does not hold the content of volume date")
	})
	t.Run("gone", func(t *testing.T) {
		docker := withReadOnly(t)
		for _, name := range []string{"web", "viewer"} {
			assert.NilError(t, docker.ContainerRemove(t.Context(), name, container.RemoveOptions{Force: true}))
		}
		assert.NilError(t, docker.VolumeRemove(t.Context(), "data", false))
		_, err := engineOf(docker).Replace(t.Context(), options, nil)
		assert.NilError(t, err)
		assert.Equal(t, docker.Data(), "one")
	})
}

// A container that was renamed since is not replaced, nor another that has its name now,
// without a word.
func TestReplaceOfARenamedContainerSaysSo(t *testing.T) {
	docker := withTwo(t)
	web := docker.FindContainer("web")
	old := web.ID
	assert.NilError(t, docker.ContainerRename(t.Context(), web.ID, "web-old"))
	dry := replaceOptions()
	dry.DryRun = true
	planned, err := engineOf(docker).Replace(t.Context(), dry, nil)
	assert.NilError(t, err)
	assert.Equal(t, planned.Old, "web-old")
	assert.Assert(t, is.Contains(planned.Plan.String(), "rename container web-old (it becomes web, as it was captured)"))

	other := docker.Create(t, "web", &container.Config{}, &container.HostConfig{})
	for _, options := range []replace.Options{dry, replaceOptions()} {
		_, err = engineOf(docker).Replace(t.Context(), options, nil)
		assert.ErrorContains(t, err, "container web is not the one that was captured, which is named web-old now")
	}
	assert.NilError(t, docker.ContainerRemove(t.Context(), other.ID, container.RemoveOptions{}))
	var got enginetest.Events
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, is.Contains(strings.Join(got.Warnings(), "\n"), "rename container web-old"))
	assertReplaced(t, docker, old)
}

func TestADryRunSaysWhatIsPending(t *testing.T) {
	docker := withTwo(t)
	killedAt(t, docker, "apply data", 1)
	dry := replaceOptions()
	dry.DryRun = true
	_, err := engineOf(docker).Replace(t.Context(), dry, nil)
	pending, ok := errors.AsType[*replace.PendingError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, pending.Container, "web")
	assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil))
}
