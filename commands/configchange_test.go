package commands

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

var someConfigChanges = []runconfig.ConfigChange{
	{What: runconfig.ConfigImage, Verb: "change", Now: "app:2", Then: "app:1"},
	{What: runconfig.ConfigEnvironment, Name: "DEBUG", Verb: "remove"},
	{What: runconfig.ConfigEnvironment, Name: "MODE", Verb: "change"},
	{What: runconfig.ConfigPort, Name: "80/tcp", Verb: "change", Now: "8081", Then: "8080"},
	{What: runconfig.ConfigPort, Name: "22/tcp", Verb: "remove", Now: "22"},
	{What: runconfig.ConfigMount, Name: "/data", Verb: "add", Then: "volume data"},
}

func TestDryRunTellsOfTheConfiguration(t *testing.T) {
	eng := &replacingEngine{replaced: replace.Result{
		Restored: build.Restored{Name: "web", Snapshot: firstSnapshot(), Plan: plan.Plan{{Op: plan.OpStopContainer, Target: "web"}}},
		Config:   someConfigChanges,
		Volumes:  []replace.VolumeChange{{Volume: "data", Changed: replace.Count{Entries: 2, Bytes: 2_500_000}}},
	}}
	f, err := runReplacing(t, eng, nil, "restore", "--replace", "--dry-run", "x")
	assert.NilError(t, err)
	assert.Equal(t, f.stdout.String(), `stop container web
change image: app:1 instead of app:2
change port 80/tcp: published on 8080 instead of 8081
change port 22/tcp: no longer published (now 22)
change mount /data: volume data
change environment: remove DEBUG, change MODE
no changes
`)
}
