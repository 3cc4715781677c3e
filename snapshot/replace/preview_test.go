package replace

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// TestPreviewTellsOfTheConfiguration makes a container anew with another environment.
func TestPreviewTellsOfTheConfiguration(t *testing.T) {
	docker := enginetest.New()
	docker.Run(t, "web")
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	config := docker.FindContainer("web").Config
	config.Env = append(config.Env, "DEBUG=1")
	rp := replacerOf(docker)
	g, err := rp.findAll(t.Context(), []Options{{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}}, shared{}, nil)
	assert.NilError(t, err)
	assert.NilError(t, rp.plan(t.Context(), g, nil))
	changes := g.result(g.members[0]).Config
	assert.DeepEqual(t, changes, []runconfig.ConfigChange{{What: runconfig.ConfigEnvironment, Name: "DEBUG", Verb: "remove"}})
}
