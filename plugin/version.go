package plugin

import (
	"cmp"
	"runtime/debug"

	"github.com/cua-snapshot/docker-snapshot/plugin/metadata"
)

// Version is the plugin's version: the one it was built as, else what the build
// knows about the source.
func Version() string {
	var source string
	if info, ok := debug.ReadBuildInfo(); ok {
		source = info.Main.Version
	}
	return cmp.Or(metadata.Stamped(), source, "(devel)")
}
