package snapshot

import (
	"maps"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// A restore that was killed leaves a dead worker that says which volumes it was
// filling. Those that a copy mounts are the copy's; a worker that lives is let be.
func TestTheNextRestoreClearsWhatAKilledOneLeft(t *testing.T) {
	docker := newFakeDocker()
	docker.withVolumes()
	for _, name := range []string{"half", "whole", "going", "kept"} {
		_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: name})
		assert.NilError(t, err)
	}
	docker.create(t, "copy", &container.Config{}, &container.HostConfig{Binds: []string{"whole:/data"}})
	worker := func(name, state, made string) {
		labels := map[string]string{volumebackup.LabelPurpose: "restore", labelMade: made, "cua.snapshot.worker.frozen": "null"}
		maps.Copy(labels, volumebackup.JournalLabels("v1"))
		docker.create(t, "cua-snapshot-"+name, &container.Config{Image: workerImage, Labels: labels}, &container.HostConfig{}).state = state
	}
	worker("dead", "exited", `["half", "whole", "gone"]`)
	worker("alive", "running", `["going"]`)
	worker("cua-snapshot-012345-settled", "exited", `["kept"]`) // its copy was made, and removed since

	engine := docker.engine()
	engine.clearCopies(t.Context(), func(event Event) { t.Error(event.Text) })
	for name, stays := range map[string]bool{"half": false, "whole": true, "going": true, "kept": true} {
		_, err := docker.VolumeInspect(t.Context(), name)
		assert.Equal(t, err == nil, stays, name)
	}
	assert.Assert(t, docker.findContainer("cua-snapshot-dead") == nil)
	assert.Assert(t, docker.findContainer("cua-snapshot-alive") != nil)
}
