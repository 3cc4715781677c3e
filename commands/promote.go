package commands

import (
	"context"
	"errors"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
)

func newPromoteCommand(d deps) *cobra.Command {
	o := restoreOptions{replace: true}
	cmd := &cobra.Command{
		Use:   "promote [OPTIONS] COPY",
		Short: "Put a copy in the place of the container that it was made of",
		Long: `Put a copy that restore or fork has made in the place of the original, and print
the new container's ID.

The container becomes what the copy is now: its files, its environment and limits, and
in the original's volumes exactly what the copy's volumes hold. It has the original's
name, networks, addresses, aliases and ports, its labels of Compose, its mounts and its
restart policy. The copy is frozen meanwhile, and removed with its volumes in the end.

As with restore --replace, everything is checked before anything is touched, a snapshot
of the original is taken first, and how to go back to it is printed. If anything fails,
original and copy run again as they were. The copy's state stays as a snapshot of the
original, too. If the original is gone, the copy takes its name and makes its volumes
again.`,
		Example: `  docker snapshot restore --name web-copy web:before-upgrade
  docker snapshot promote --dry-run web-copy
  docker snapshot promote web-copy`,
		Args:                  cli.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     upTo(1, completeNames(d)),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.engine.Copy = args[0]
			if args[0] == "" {
				return usageError(cmd, errors.New("container name cannot be empty"))
			}
			o.engine.Wait = o.engine.Wait || !cmd.Flags().Changed("wait")
			if err := checkWaitingFlags(cmd.Flags(), o.engine.Wait, "wait"); err != nil {
				return usageError(cmd, err)
			}
			return runReplace(ctx, d, o)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.engine.DryRun, "dry-run", false, "Show what would be done, and do nothing")
	flags.BoolVarP(&o.force, "force", "f", false, "Do not ask before replacing")
	flags.BoolVarP(&o.force, "yes", "y", false, "The same as --force")
	flags.BoolVar(&o.files, "files", false, "Show each file that was changed, on stderr")
	flags.StringVar(&o.engine.Name, "name", "", "Take the place of this container (default: the one that was captured)")
	flags.BoolVar(&o.engine.StopOthers, "stop-others", false, "Stop other containers that hold the original's volumes, and start them again")
	flags.Var(parsed(&o.engine.StopTimeout, "int", parseStopTimeout), "timeout", "Seconds until a container that does not stop is killed (default: the container's own)")
	flags.BoolVar(&o.engine.Wait, "wait", true, "Wait until the container is healthy, has run for --settle, or has ended with 0; else put everything back")
	addWaitingFlags(flags, &o.engine.Waiting)
	o.volumes.addMakingFlags(flags)
	o.printer.addFlag(flags, restoreResult{})
	o.progress.addFlags(flags)
	return cmd
}
