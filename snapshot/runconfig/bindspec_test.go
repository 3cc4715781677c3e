package runconfig

import (
	"testing"

	"gotest.tools/v3/assert"
)

func TestParseBind(t *testing.T) {
	for text, want := range map[string]bindSpec{
		"data:/data":          {Source: "data", Destination: "/data"},
		"/srv:/srv:ro,z":      {Source: "/srv", Destination: "/srv", options: []string{"ro", "z"}},
		"nocopy:/nocopy:Z":    {Source: "nocopy", Destination: "/nocopy", options: []string{"Z"}},
		"a:/b:c:d":            {Source: "a", Destination: "/b", options: []string{"c:d"}},
		"data:/data:nocopy,z": {Source: "data", Destination: "/data", options: []string{"nocopy", "z"}},
	} {
		b, ok := parseBind(text)
		assert.Assert(t, ok, text)
		assert.DeepEqual(t, b.options, want.options)
		assert.Equal(t, b.Source+" "+b.Destination, want.Source+" "+want.Destination)
		assert.Equal(t, b.String(), text)
	}
	_, ok := parseBind("/anonymous")
	assert.Assert(t, !ok)
	b, _ := parseBind("nocopy:/nocopy:z")
	assert.Equal(t, b.with("nocopy").String(), "nocopy:/nocopy:z,nocopy")
	assert.Equal(t, b.with("z").String(), "nocopy:/nocopy:z")
	assert.Equal(t, b.String(), "nocopy:/nocopy:z")
}
