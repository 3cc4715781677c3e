package labels_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestKeySaysWhatAMountShows(t *testing.T) {
	for name, tc := range map[string]struct {
		mount labels.Mount
		want  string
	}{
		"volume":               {labels.Mount{Type: "volume", Name: "data", Destination: "/a"}, "data"},
		"part of it elsewhere": {labels.Mount{Type: "volume", Name: "data", Destination: "/b", Subpath: "part"}, "data"},
		"bind mount":           {labels.Mount{Type: "bind", Source: "/data", Destination: "/a"}, "/data"},
		"bind mount elsewhere": {labels.Mount{Type: "bind", Source: "/data", Destination: "/b"}, "/data"},
		"of a Windows host":    {labels.Mount{Type: "bind", Source: `C:\data`, Destination: "/a"}, `/C:\data`},
		"of nothing":           {labels.Mount{Type: "bind", Destination: "/a"}, ""},
		"memory":               {labels.Mount{Type: "tmpfs", Destination: "/a"}, ""},
		"another type":         {labels.Mount{Type: "npipe", Source: "pipe", Destination: "/a"}, ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.mount.Key(), tc.want) })
	}
}
