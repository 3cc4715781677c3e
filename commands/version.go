package commands

import (
	"context"
	"fmt"
	"runtime"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/cli/templates"
	"github.com/spf13/cobra"
)

// versions is what the version command prints.
type versions struct {
	Version   string `json:"version"`
	GoVersion string `json:"go_version"`
	Platform  string `json:"platform"`
}

func newVersionCommand(d deps) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version [OPTIONS]",
		Short: "Show the version of this plugin",
		Example: `  docker snapshot version
  docker snapshot version --format '{{.Version}}'`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: adapt(func(context.Context, *cobra.Command, []string) error {
			return newVersions(d).print(d, format)
		}),
	}
	cmd.Flags().VarP(checked{&format, checkTemplate}, "format", "f", "Format the output: 'json', or a Go template")
	return cmd
}

func newVersions(d deps) versions {
	return versions{d.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

func (v versions) print(d deps, format string) error {
	switch format {
	case "":
		return writeLine(d.out, fmt.Sprintf("docker snapshot version %s (%s, %s)", v.Version, v.GoVersion, v.Platform))
	case formatter.JSONFormatKey:
		return writeJSON(d.out, v)
	}
	tmpl, err := templates.Parse(format)
	if err != nil {
		return fmt.Errorf("parse template: %w", err)
	}
	if err := tmpl.Execute(d.out, v); err != nil {
		return fmt.Errorf("execute template: %w", err)
	}
	return writeLine(d.out, "")
}
