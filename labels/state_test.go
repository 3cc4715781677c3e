package labels_test

import (
	"encoding/json"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// state has only what every state has.
func state() labels.Record {
	return labels.Record{
		ID: "20260131-235959-0a1b2c", Kind: labels.KindState, Line: "chat", Created: time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC),
		Trigger: labels.TriggerManual, Container: labels.Container{Name: "chat"},
	}
}

func TestAStateIsReadAsItWasWritten(t *testing.T) {
	image, err := labels.Encode(state())
	assert.NilError(t, err)
	decoded, err := labels.Decode(image)
	assert.NilError(t, err)
	assert.DeepEqual(t, decoded, state())
}

func TestASealCoversTheLine(t *testing.T) {
	r := state()
	var err error
	r.Seal, err = labels.Seal(r, key)
	assert.NilError(t, err)
	assert.Assert(t, labels.IsSealed(r, key))
	r.Line, r.Container.Name = "other", "other"
	assert.Assert(t, !labels.IsSealed(r, key))
}

func TestAStateHasNoContainer(t *testing.T) {
	for name, spoil := range map[string]func(r *labels.Record){
		"no line":            func(r *labels.Record) { r.Line = "" },
		"another line":       func(r *labels.Record) { r.Line = "other" },
		"no line at all":     func(r *labels.Record) { r.Line, r.Container.Name = "", "" },
		"not a line":         func(r *labels.Record) { r.Line, r.Container.Name = "a/b", "a/b" },
		"a container":        func(r *labels.Record) { r.Container.ID = minimal().Container.ID },
		"a container's name": func(r *labels.Record) { r.Container.Name = "web" },
		"a state":            func(r *labels.Record) { r.Container.State = labels.StateRunning },
		"an image":           func(r *labels.Record) { r.Container.Image = "busybox" },
		"an image's ID":      func(r *labels.Record) { r.Container.ImageID = "sha256:0" },
		"a configuration":    func(r *labels.Record) { r.Config = minimal().Config },
		"half of one":        func(r *labels.Record) { r.Config.HostConfig = json.RawMessage(`{"Privileged":true}`) },
		"mounts":             func(r *labels.Record) { r.Mounts = full().Mounts },
		"a platform":         func(r *labels.Record) { r.Platform = "linux/amd64" },
		"a size":             func(r *labels.Record) { r.Size = 1 },
		"an unknown kind":    func(r *labels.Record) { r.Kind = "thing" },
	} {
		t.Run(name, func(t *testing.T) {
			r := state()
			spoil(&r)
			_, err := labels.Encode(r)
			assert.Assert(t, err != nil)
		})
	}
}

func TestOnlyAStateHasALine(t *testing.T) {
	r := minimal()
	r.Line = "web"
	_, err := labels.Encode(r)
	assert.ErrorContains(t, err, "only states have one")
}
