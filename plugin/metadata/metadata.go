// Package metadata says what the plugin is, and tells the Docker CLI before
// anything else happens.
//
// The CLI starts a plugin twice for each command: first it asks for this
// metadata, then it runs the command. Most of what a start takes goes into
// initializing packages: the API client, gRPC, OpenTelemetry. Go initializes a
// package as soon as its imports are, and of those that are ready the one whose
// import path sorts first. This one comes before all that is expensive, as long
// as what it imports is needed by nearly everything: runtime/debug, say, sorts
// behind gRPC, and would drag it in front.
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

// answers tells whether the CLI asks and the answer is known here. Builds that
// nobody stamped leave it to the CLI's plugin package: finding their version
// needs runtime/debug.
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
