package snapshot

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// handMade is an image that somebody has given our labels, and nonsense in one.
func handMade(t *testing.T, key, value string) *enginetest.Docker {
	t.Helper()
	docker, made := withSnapshots(t, "web:one")
	docker.FindImage(made[0].ImageID).Config.Labels[key] = value
	return docker
}

func TestRestoreOfAHandMadeImageFailsClearlyAndMakesNothing(t *testing.T) {
	config := func(config, host, networking string) string {
		return `{"Config":` + config + `,"HostConfig":` + host + `,"NetworkingConfig":` + networking + `}`
	}
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	tests := map[string]struct{ key, value, want string }{
		"no JSON":                  {labels.KeyConfig, "<html>", "label cua.snapshot.config=\"<html>\": broken JSON"},
		"JSON of another kind":     {labels.KeyConfig, `[1,2]`, "broken JSON"},
		"nothing in it":            {labels.KeyConfig, `{}`, "lacks the objects"},
		"a list for a string":      {labels.KeyConfig, config(`{"Image":["x"]}`, `{}`, `{}`), "read captured Config: json: cannot unmarshal array"},
		"a string for a list":      {labels.KeyConfig, config(`{"Env":"A=1"}`, `{}`, `{}`), "read captured Config"},
		"a string for a number":    {labels.KeyConfig, config(`{}`, `{"Memory":"all"}`, `{}`), "read captured HostConfig"},
		"a number beyond all":      {labels.KeyConfig, config(`{}`, `{"Memory":1e99}`, `{}`), "read captured HostConfig"},
		"a number for an object":   {labels.KeyConfig, config(`{}`, `{"LogConfig":7}`, `{}`), "read captured HostConfig"},
		"a list of networks":       {labels.KeyConfig, config(`{}`, `{}`, `{"EndpointsConfig":["a"]}`), "read captured NetworkingConfig"},
		"deep nesting":             {labels.KeyConfig, config(`{"X":`+nested(20_000)+`}`, `{}`, `{}`), "exceeded max depth"},
		"a huge label":             {labels.KeyConfig, config(`{"Env":["`+strings.Repeat("x", 5<<20)+`"]}`, `{}`, `{}`), "longer than"},
		"a device that is none":    {labels.KeyConfig, config(`{"Cmd":["x"]}`, `{"Devices":[{"PathOnHost":"/never/was"}]}`, `{}`), "device /never/was does not exist"},
		"a network that is not":    {labels.KeyConfig, config(`{"Cmd":["x"]}`, `{"NetworkMode":"x"}`, `{"EndpointsConfig":{"x":{}}}`), "network x does not exist"},
		"another's container name": {labels.KeyContainerName, "../x", "not a container name"},
		"a name of another":        {labels.KeyContainerName, "db", "no such snapshot: web:one"},
		"an ID that is none":       {labels.KeyID, "one", "is not a snapshot ID"},
		"another's ID":             {labels.KeyID, "20260131-120001-ffffff", "no such snapshot: web:one"},
		"another version":          {labels.KeyVersion, "2", "unknown schema version"},
		"mounts of another kind":   {labels.KeyMounts, `{"a":1}`, "broken JSON"},
		"an archive that is none":  {labels.KeyMounts, `[{"type":"volume","name":"x","destination":"/x","archive":{"root":"x"}}]`, "root is not a SHA-256"},
		"a state that is none":     {labels.KeyContainerState, "flying", "not one of"},
		"power over the host":      {labels.KeyEngineID, "elsewhere", "asks for privileged (all power over the host)"},
		"an archive that is lost":  {labels.KeyMounts, `[{"type":"volume","name":"x","destination":"/x","archive":{"root":"` + strings.Repeat("0f", 32) + `"}}]`, "not-found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			docker := handMade(t, test.key, test.value)
			if test.key == labels.KeyEngineID {
				img := docker.FindImage("cua-snapshot/web:one")
				img.Config.Labels[labels.KeyConfig] = config(`{"Cmd":["x"]}`, `{"Privileged":true}`, `{}`)
			}
			before := docker.World()
			_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one"}, nil)
			assert.ErrorContains(t, err, test.want)
			assert.Equal(t, docker.World(), before)
		})
	}
}

func TestRestoreWarnsOfWhatItDoesNotKnow(t *testing.T) {
	docker := enginetest.New()
	docker.FutureHost = map[string]any{"InventedLater": true}
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{})
	s := snapshotOf(t, docker, capture.Options{Container: "web"})
	_, warnings := restore1(t, docker, runconfig.RestoreOptions{Snapshot: string(s.ID)})
	assert.DeepEqual(t, warnings, []string{"this version does not know HostConfig.InventedLater and leaves it out"})
}

func TestRestoreElsewhereWarnsOfWhatTheEngineDoesNotKnow(t *testing.T) {
	docker := enginetest.New()
	docker.About.ID = "engine-2"
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{Resources: container.Resources{Memory: 1 << 30}})
	s := snapshotOf(t, docker, capture.Options{Container: "web"})
	docker.About.ID = "engine-1"
	docker.FutureHost = map[string]any{"Memory": 0}
	_, warnings := restore1(t, docker, runconfig.RestoreOptions{Snapshot: string(s.ID)})
	assert.DeepEqual(t, warnings, []string{"the engine does not know HostConfig.Memory and left it out"})
}

func TestRestoreRefusesBadNames(t *testing.T) {
	docker, _ := withSnapshots(t, "web:one")
	before := docker.World()
	for _, name := range []string{"a/b", "-a", "a b", "/web2", "é", "x"} {
		_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "one", Name: name}, nil)
		assert.ErrorContains(t, err, "invalid container name")
	}
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "two"}, nil)
	assert.ErrorContains(t, err, "no such snapshot: two")
	assert.Equal(t, docker.World(), before)
}

func TestADryRunWritesNothing(t *testing.T) {
	docker, _ := withSnapshots(t, "web:one")
	before := docker.World()
	restored, warnings := restore1(t, docker, runconfig.RestoreOptions{Snapshot: "one", DryRun: true, Name: "copy"})
	assert.Equal(t, docker.World(), before)
	assert.Equal(t, restored.ContainerID, "")
	assert.Equal(t, len(warnings), 0)
	assert.Assert(t, strings.HasPrefix(restored.Plan.String(), "create container copy (from "))
	for _, call := range docker.Calls {
		assert.Assert(t, strings.Contains(call, "Inspect") || strings.Contains(call, "List") || call == "Info", call)
	}
}
