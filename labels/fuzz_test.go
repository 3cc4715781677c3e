package labels_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// FuzzDecode gives Decode labels as a JSON object. Whatever it accepts has to be
// written and read back as the same record.
func FuzzDecode(f *testing.F) {
	fixture, err := os.ReadFile("testdata/schema-1.json")
	assert.NilError(f, err)
	f.Add(fixture)
	for _, record := range []labels.Record{full(), minimal(), state()} {
		image, err := labels.Encode(record)
		assert.NilError(f, err)
		for _, containerID := range []string{record.Container.ID, "web", "../..", strings.TrimSuffix(record.Container.ID, "ab")} {
			image[labels.KeyContainerID] = containerID
			seed, err := json.Marshal(image)
			assert.NilError(f, err)
			f.Add(seed)
		}
	}
	f.Add([]byte(`{"cua.snapshot.id":"20261121-093015-7be41c","cua.snapshot.version":"1"}`))
	f.Add([]byte(`{"cua.snapshot.id":"","cua.snapshot.meta.":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var image map[string]string
		if json.Unmarshal(raw, &image) != nil {
			return
		}
		record, err := labels.Decode(image)
		if err != nil {
			return
		}
		encoded, err := labels.Encode(record)
		assert.NilError(t, err)
		again, err := labels.Decode(encoded)
		assert.NilError(t, err)
		want, err := json.Marshal(record) // also takes out white space, as Encode does
		assert.NilError(t, err)
		got, err := json.Marshal(again)
		assert.NilError(t, err)
		assert.Equal(t, string(got), string(want))
	})
}
