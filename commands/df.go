package commands

import (
	"context"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
)

type dfOptions struct {
	engine   removal.OutlookOptions
	filters  []string
	verbose  bool
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

var groupings = choicesOf(space.ByContainer, space.ByRun, space.ByLine, space.ByProject)

func newSpaceCommand(d deps) *cobra.Command {
	var o dfOptions
	cmd := &cobra.Command{
		Use:   "df [OPTIONS]",
		Short: "Show how much space snapshots occupy, and what pruning would free",
		Long: `Show how much space snapshots occupy on the engine, how near they are to the limits,
and what docker snapshot prune would free.

UNIQUE is what is free once the snapshots of that row are gone. SHARED is what
something else needs, too: images that are no snapshots, and snapshots that are not of
that row. IN VOLUMES is how much there was in the volumes, counted for each snapshot.

A store is a volume with the archives of volumes. Its SIZE is what it takes on disk
with all that belongs to it. HOLES are bytes within its files that were given back to
the disk: docker system df counts them, du does not.

Limits are about automatic snapshots only. Without --verbose the fullest line is shown
of those limits that each container has for itself.`,
		Example: `  docker snapshot df
  docker snapshot df --by container --filter since=7d
  docker snapshot df --format json`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, _ []string) (err error) {
			if o.engine.Filter, err = catalog.ParseFilter(o.filters, d.clock.now()); err != nil {
				return usageError(cmd, err)
			}
			return runSpace(ctx, d, o)
		}),
	}
	flags := cmd.Flags()
	flags.VarP(opts.NewListOptsRef(&o.filters, nil), "filter", "f", "Show only what snapshots occupy that match key=value, as in ls")
	flags.Var(checked(&o.engine.By, groupings.check), "by", "Show a row for each 'container', 'run', 'line' or 'project'")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "Show a row for each snapshot, and every limit")
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, dfResult{})
	o.progress.addFlags(flags)
	return cmd
}

func runSpace(ctx context.Context, d deps, o dfOptions) (err error) {
	if o.engine.Policy, err = d.settings.policy(); err != nil {
		return err
	}
	found, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (removal.Outlook, error) {
		return eng.Outlook(ctx, o.engine, p)
	})
	if err != nil {
		return err
	}
	if o.printer.formats() {
		return o.printer.print(d.out, "", o.result(found))
	}
	return o.printTables(d, found)
}
