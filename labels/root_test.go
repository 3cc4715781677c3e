package labels_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

var layers = []string{"sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("b", 64)}

func rootOf(t *testing.T, r labels.Record, layers []string) string {
	t.Helper()
	root, err := labels.Root(r, layers)
	assert.NilError(t, err)
	return root
}

// The form of what is hashed is a contract: others compute it, too.
func TestRootIsTheHashOfTheseLines(t *testing.T) {
	config := `{"Config":{"Cmd":["sh","-c","a<b && c>d"],"NotKnownYet":{"x":1}},"HostConfig":{"Memory":12345678901234567},"NetworkingConfig":{"EndpointsConfig":{"shop":{"Aliases":["db"]}}}}`
	sum := sha256.Sum256([]byte(config))
	text := "cua-root 1\n" +
		"layer " + layers[0] + "\nlayer " + layers[1] + "\n" +
		"config " + hex.EncodeToString(sum[:]) + "\n" +
		`volume "/var/lib/data" ` + strings.Repeat("0f", 32) + "\n" +
		`attachment "log" ` + strings.Repeat("1", 64) + "\n"
	sum = sha256.Sum256([]byte(text))
	assert.Equal(t, rootOf(t, full(), layers), hex.EncodeToString(sum[:]))
}

func TestEqualStatesHaveEqualRoots(t *testing.T) {
	want := rootOf(t, full(), layers)
	for name, change := range map[string]func(*labels.Record){
		"another name": func(r *labels.Record) {
			r.ID, r.Name, r.Description, r.Pinned = "20260201-000000-ffffff", "x", "y", false
		},
		"another time":        func(r *labels.Record) { r.Created = r.Created.Add(1) },
		"stored in less room": func(r *labels.Record) { r.Mounts[0].Archive.Stored = 0 },
		"keys in other order": func(r *labels.Record) {
			r.Config.Config = json.RawMessage(` {"NotKnownYet": {"x": 1}, "Cmd": ["sh", "-c", "a<b && c>d"]}`)
		},
	} {
		r := full()
		change(&r)
		assert.Equal(t, rootOf(t, r, layers), want, name)
	}
	for name, change := range map[string]func(*labels.Record){
		"another volume":     func(r *labels.Record) { r.Mounts[0].Archive.Root = strings.Repeat("0e", 32) },
		"another place":      func(r *labels.Record) { r.Mounts[0].Destination = "/elsewhere" },
		"no volume":          func(r *labels.Record) { r.Mounts = nil },
		"another attachment": func(r *labels.Record) { r.Attachments[0].SHA256 = strings.Repeat("2", 64) },
		"another limit":      func(r *labels.Record) { r.Config.HostConfig = json.RawMessage(`{"Memory":12345678901234568}`) },
	} {
		r := full()
		change(&r)
		assert.Assert(t, rootOf(t, r, layers) != want, name)
	}
	assert.Assert(t, rootOf(t, full(), layers[:1]) != want)
}

func TestRootOfABrokenConfiguration(t *testing.T) {
	r := full()
	r.Config.HostConfig = json.RawMessage("{")
	_, err := labels.Root(r, layers)
	assert.ErrorContains(t, err, "HostConfig")
}
