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
	s, err := replacerOf(docker).catalog.Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	web := docker.FindContainer("web").Inspect(false)
	planned, err := replacerOf(docker).planReplace(t.Context(), s, &web, Options{}, nil)
	assert.NilError(t, err)
	changes := (&transaction{Plan: planned}).Summary().Config
	assert.DeepEqual(t, changes, []runconfig.ConfigChange{{What: runconfig.ConfigEnvironment, Name: "DEBUG", Verb: "remove"}})
}
