package snapshot

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// TestPreviewTellsOfTheConfiguration makes a container anew with another environment.
func TestPreviewTellsOfTheConfiguration(t *testing.T) {
	docker := withTwo(t)
	config := docker.FindContainer("web").Config
	config.Env = append(config.Env, "DEBUG=1")
	docker.Service = nil // nothing to compare
	s, err := engineOf(docker).Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	web := docker.FindContainer("web").Inspect(false)
	plan, err := engineOf(docker).replace.PlanReplace(t.Context(), s, &web, replaceOptions(), nil)
	assert.NilError(t, err)
	changes := (&replace.Transaction{Plan: plan}).Summary().Config
	assert.DeepEqual(t, changes, []runconfig.ConfigChange{{What: runconfig.ConfigEnvironment, Name: "DEBUG", Verb: "remove"}})
}
