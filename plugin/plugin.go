// Package plugin connects the commands with the Docker CLI's plugin protocol.
package plugin

import (
	"errors"
	"os"

	cliplugin "github.com/docker/cli/cli-plugins/plugin"
	"github.com/docker/cli/cli/command"
	"github.com/docker/cli/cli/flags"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/commands"
	"github.com/cua-snapshot/docker-snapshot/plugin/metadata"
)

// Run executes the command that the process was started with, as a plugin of
// the Docker CLI or by itself. It exits with the command's status unless that
// is 0. Package commands decides the status; it is documented in the help.
func Run() {
	if cliplugin.RunningStandalone() {
		os.Args = append(os.Args[:1], withCommand(os.Args[1:])...)
	}
	args := os.Args[1:]
	global := args[:len(args)-len(afterGlobalFlags(args))]
	version := Version()
	newRoot := func(cli command.Cli) *cobra.Command {
		root := commands.NewRoot(cli, version, global, args)
		endQuietly(root, os.Exit)
		return root
	}
	cliplugin.Run(newRoot, metadata.Plugin(version))
}

// endQuietly makes commands exit without a word when nobody reads their output any more, and when the
// command that they ran has failed. The CLI's plugin package would print a line for every error.
func endQuietly(root *cobra.Command, exit func(status int)) {
	for _, cmd := range root.Commands() {
		endQuietly(cmd, exit)
		run := cmd.RunE
		if run == nil {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if errors.Is(err, commands.ErrOutputGone) {
				exit(commands.StatusOutputGone)
			}
			if passed, ok := errors.AsType[*commands.PassedStatus](err); ok {
				exit(passed.Status)
			}
			return err
		}
	}
}

// withCommand turns the arguments of "docker-snapshot create web" into those of
// "docker snapshot create web", which is how the CLI would start the plugin.
// Docker's own global options stay in front.
func withCommand(args []string) []string {
	at := len(args) - len(afterGlobalFlags(args))
	if at < len(args) {
		switch args[at] {
		case commands.Name:
			return args
		case "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			at++
		}
	}
	if at < len(args) && args[at] == commands.Name {
		return args
	}
	with := append([]string{}, args[:at]...)
	return append(append(with, commands.Name), args[at:]...)
}

// afterGlobalFlags returns what follows docker's global options. With options
// that are not docker's, everything is left to the command.
func afterGlobalFlags(args []string) []string {
	global := pflag.NewFlagSet("docker", pflag.ContinueOnError)
	global.Usage = func() {}
	global.SetInterspersed(false)
	flags.NewClientOptions().InstallFlags(global)
	if err := global.Parse(args); err != nil {
		return args
	}
	return global.Args()
}
