package commands

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

var someConfigChanges = []snapshot.ConfigChange{
	{What: snapshot.ConfigImage, Verb: "change", Now: "app:2", Then: "app:1"},
	{What: snapshot.ConfigEnvironment, Name: "DEBUG", Verb: "remove"},
	{What: snapshot.ConfigEnvironment, Name: "MODE", Verb: "change"},
	{What: snapshot.ConfigPort, Name: "80/tcp", Verb: "change", Now: "8081", Then: "8080"},
	{What: snapshot.ConfigPort, Name: "22/tcp", Verb: "remove", Now: "22"},
	{What: snapshot.ConfigMount, Name: "/data", Verb: "add", Then: "volume data"},
}

func TestDryRunTellsOfTheConfiguration(t *testing.T) {
	eng := &replacingEngine{replaced: snapshot.Replaced{
		Restored: snapshot.Restored{Name: "web", Snapshot: firstSnapshot(), Plan: snapshot.Plan{{Op: snapshot.OpStopContainer, Target: "web"}}},
		Config:   someConfigChanges,
		Volumes:  []snapshot.VolumeChange{{Volume: "data", Changed: snapshot.Count{Entries: 2, Bytes: 2_500_000}}},
	}}
	f, err := runReplacing(t, eng, nil, "restore", "--replace", "--dry-run", "x")
	assert.NilError(t, err)
	assert.Equal(t, f.stdout.String(), `stop container web
change image: app:1 instead of app:2
change port 80/tcp: published on 8080 instead of 8081
change port 22/tcp: no longer published (now 22)
change mount /data: volume data
change environment: remove DEBUG, change MODE
volume data: create 0 (0B), change 2 (2.5MB), delete 0 (0B)
`)
}
