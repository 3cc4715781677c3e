package commands

import (
	"context"
	"fmt"
	"runtime"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
)

// versions is what the version command prints.
type versions struct {
	Version   string `json:"version"`
	GoVersion string `json:"go_version"`
	Platform  string `json:"platform"`
}

func newVersionCommand(d deps) *cobra.Command {
	var how printer
	cmd := &cobra.Command{
		Use:   "version [OPTIONS]",
		Short: "Show the version of this plugin",
		Example: `  docker snapshot version
  docker snapshot version --format '{{.Version}}'`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: adapt(func(context.Context, *cobra.Command, []string) error {
			return newVersions(d).print(d, how)
		}),
	}
	cmd.Flags().VarP(how.option(versions{}), "format", "f", "Format the output: 'json', or a Go template")
	return cmd
}

func newVersions(d deps) versions {
	return versions{d.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

func (v versions) print(d deps, how printer) error {
	return how.print(d.out, fmt.Sprintf("docker snapshot version %s (%s, %s)", v.Version, v.GoVersion, v.Platform), v)
}
