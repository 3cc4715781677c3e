// Package metadata says what the plugin is, and tells the Docker CLI before
// anything else happens.
//
// The CLI starts a plugin twice for each command: first it asks for this
// metadata, then it runs the command. A start spends most of its time on
// initializing packages: the API client, gRPC, OpenTelemetry. So this package
// answers while it is initialized itself, before the expensive ones.
//
// Go initializes a package once its imports are initialized. Of the packages
// that are ready, the one whose import path sorts first is next. So this package
// may only import what nearly every other needs. runtime/debug, for one, sorts
// behind gRPC: if this package imported it, gRPC would come first.
package metadata

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	climetadata "github.com/docker/cli/cli-plugins/metadata"
)

// version is set by the linker for releases and by install.sh:
// -X github.com/cua-snapshot/docker-snapshot/plugin/metadata.version=v1.2.3.
var version string

func init() {
	if answers(os.Args, version) {
		os.Exit(answer(os.Stdout, os.Stderr, version))
	}
}

// answers tells whether the CLI asks for the metadata, and this package can answer. It
// cannot in a build without a stamped version, because only runtime/debug knows its
// version: the CLI's plugin package answers then.
func answers(args []string, version string) bool {
	return version != "" && len(args) == 2 && args[1] == climetadata.MetadataSubcommandName
}

// answer prints the metadata and returns the exit status.
func answer(out, problems io.Writer, version string) int {
	if err := json.NewEncoder(out).Encode(Plugin(version)); err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return 1
	}
	return 0
}

// Stamped is the version that the linker was told, or nothing.
func Stamped() string { return version }

// Plugin is what the Docker CLI knows about the plugin of that version.
func Plugin(version string) climetadata.Metadata {
	return climetadata.Metadata{
		SchemaVersion:    "0.1.0",
		Vendor:           "cua-snapshot",
		Version:          version,
		ShortDescription: "Snapshots of containers: filesystem, volumes and configuration",
		URL:              "https://github.com/cua-snapshot/docker-snapshot",
	}
}
