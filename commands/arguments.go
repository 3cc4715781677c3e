package commands

import (
	"strings"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
)

// suggestDistance is how many letters may differ for a command to be suggested.
const suggestDistance = 2

// checkArguments makes wrong arguments, and words that are no command, end with the
// status of wrong options.
func checkArguments(root *cobra.Command) {
	root.SuggestionsMinimumDistance = suggestDistance
	for _, cmd := range commandsOf(root) {
		check := cmd.Args
		if check == nil { // the guard takes any
			check = cobra.ArbitraryArgs
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return nil
			}
			return cli.StatusError{Cause: err, Status: safeText(err.Error() + suggestion(cmd, args)), StatusCode: statusUsage}
		}
	}
}

// commandsOf are a command and all below it.
func commandsOf(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, commandsOf(below)...)
	}
	return all
}

// suggestion names the commands that may have been meant.
func suggestion(cmd *cobra.Command, args []string) string {
	if !cmd.HasSubCommands() || len(args) == 0 {
		return ""
	}
	meant := cmd.SuggestionsFor(args[0])
	if len(meant) == 0 {
		return ""
	}
	return "\n\nDid you mean: " + cmd.CommandPath() + " " + strings.Join(meant, ", or "+cmd.CommandPath()+" ")
}
