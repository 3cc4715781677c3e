package snapshot

import (
	"testing"

	"gotest.tools/v3/assert"
)

func TestParseBind(t *testing.T) {
	for text, want := range map[string]bindSpec{
		"data:/data":          {source: "data", destination: "/data"},
		"/srv:/srv:ro,z":      {source: "/srv", destination: "/srv", options: []string{"ro", "z"}},
		"nocopy:/nocopy:Z":    {source: "nocopy", destination: "/nocopy", options: []string{"Z"}},
		"a:/b:c:d":            {source: "a", destination: "/b", options: []string{"c:d"}},
		"data:/data:nocopy,z": {source: "data", destination: "/data", options: []string{"nocopy", "z"}},
	} {
		b, ok := parseBind(text)
		assert.Assert(t, ok, text)
		assert.DeepEqual(t, b.options, want.options)
		assert.Equal(t, b.source+" "+b.destination, want.source+" "+want.destination)
		assert.Equal(t, b.String(), text)
	}
	_, ok := parseBind("/anonymous")
	assert.Assert(t, !ok)
	b, _ := parseBind("nocopy:/nocopy:z")
	assert.Equal(t, b.with("nocopy").String(), "nocopy:/nocopy:z,nocopy")
	assert.Equal(t, b.with("z").String(), "nocopy:/nocopy:z")
	assert.Equal(t, b.String(), "nocopy:/nocopy:z")
}
