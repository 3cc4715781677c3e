package snapshot

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// Swarm starts another task as soon as one stops, so there is no place to restore into.
func TestSwarmTaskIsCapturedAndNotReplaced(t *testing.T) {
	docker := enginetest.New()
	task := docker.Create(t, "web.1", &container.Config{Labels: map[string]string{
		"com.docker.swarm.task.id": "x1", "com.docker.swarm.service.name": "web",
	}}, &container.HostConfig{Binds: []string{"data:/data"}})
	docker.FindVolume("data").Content = "one"
	var got enginetest.Events
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web.1", Name: "one"}, got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, slices.ContainsFunc(got.All, func(e plan.Event) bool {
		return e.Level == plan.LevelNote && e.Text == "container web.1 is a task of Swarm service web: its secrets and configs are not in the snapshot"
	}), "%v", got.All)

	const refused = "container web.1 is a task of Swarm service web: Swarm starts another one as soon as it stops"
	o := replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web.1:one"}}
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.ErrorContains(t, err, refused)
	assert.Assert(t, docker.FindContainer(task.ID) != nil)
	o.Only = []string{"data"}
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.ErrorContains(t, err, refused)
	docker.FindVolume("data").Content = "two"
	o.Live = true
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindVolume("data").Content, "one")
	_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web.1:one", Name: "copy"}, nil)
	assert.NilError(t, err)
}
