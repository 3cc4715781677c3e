package snapshot

import (
	"maps"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// A restore that was killed leaves a dead worker that says which volumes it was
// filling. Those that a copy mounts are the copy's; a worker that lives is let be.
func TestTheNextRestoreClearsWhatAKilledOneLeft(t *testing.T) {
	docker := enginetest.New()
	for name, operation := range map[string]string{"half": "one", "theirs": "", "whole": "one", "going": "two", "kept": "three"} {
		_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: map[string]string{labels.KeyOperation: operation}})
		assert.NilError(t, err)
	}
	docker.Create(t, "copy", &container.Config{}, &container.HostConfig{Binds: []string{"whole:/data"}})
	worker := func(name, state, made string) {
		journal := map[string]string{volumebackup.LabelPurpose: "restore", pending.LabelMade: made, "cua.snapshot.worker.frozen": "null"}
		maps.Copy(journal, volumebackup.JournalLabels("v1"))
		docker.Create(t, "cua-snapshot-"+name, &container.Config{Image: enginetest.WorkerImage, Labels: journal}, &container.HostConfig{}).State = state
	}
	worker("dead", "exited", `{"operation": "one", "volumes": ["half", "theirs", "whole", "gone"]}`)
	worker("alive", "running", `{"operation": "two", "volumes": ["going"]}`)
	worker("cua-snapshot-012345-settled", "exited", `{"operation": "three", "volumes": ["kept"]}`) // its copy was made, and removed since

	engine := engineOf(docker)
	engine.copies.ClearCopies(t.Context(), func(event plan.Event) { t.Error(event.Text) })
	for name, stays := range map[string]bool{"half": false, "theirs": true, "whole": true, "going": true, "kept": true} {
		_, err := docker.VolumeInspect(t.Context(), name)
		assert.Equal(t, err == nil, stays, name)
	}
	assert.Assert(t, docker.FindContainer("cua-snapshot-dead") == nil)
	assert.Assert(t, docker.FindContainer("cua-snapshot-alive") != nil)
}

// A copy that was to be started is not left behind unstarted. What only has the label
// from its image, and what may be about to start, is let be.
func TestCopiesThatWereNeverStartedAreRemoved(t *testing.T) {
	docker := enginetest.New()
	mark := map[string]string{labels.KeyOperation: "one"}
	docker.AddImage("plain:latest", &container.Config{Cmd: []string{"plain"}})
	docker.AddImage("marked:latest", &container.Config{Cmd: []string{"marked"}, Labels: mark})
	create := func(name, image, state string, own map[string]string) {
		docker.Create(t, name, &container.Config{Image: image, Labels: own}, &container.HostConfig{}).State = state
	}
	create("half-made", "plain", "created", mark)
	create("started", "plain", "exited", mark)
	create("not-ours", "plain", "created", nil)
	create("of-a-marked-image", "marked", "created", nil)
	docker.Clock = docker.Clock.Add(copies.UnfinishedAge)
	create("young", "plain", "created", mark)

	done, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.Equal(t, len(done), 1)
	assert.Equal(t, done[0].Container, "half-made")
	for name, stays := range map[string]bool{"half-made": false, "started": true, "not-ours": true, "of-a-marked-image": true, "young": true} {
		assert.Equal(t, docker.FindContainer(name) != nil, stays, name)
	}
}
