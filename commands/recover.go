package commands

import (
	"context"
	"errors"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

type recoverOptions struct {
	volumes  volumeOptions
	progress progressOptions
	printer  printer
	purge    bool
	force    bool // without it, a purge asks
}

// recoverResult is what recover prints.
type recoverResult struct {
	Status    string `json:"status"`
	Timestamp string `json:"timestamp"`
	Container string `json:"container"`
	Text      string `json:"text"`
}

func newRecoverCommand(d deps) *cobra.Command {
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover [OPTIONS] [CONTAINER]",
		Short: "Put right what an interrupted operation left",
		Long: `Put right what an interrupted operation left: containers that are still frozen, and
a restore in place that was not finished. The next create or restore of the same
container does so by itself. Operations that are under way are left alone.

With --purge it asks, and then removes from the engine everything that this plugin
has made there: all snapshots, pinned ones too; all stores, with the content of
volumes in them; the images of workers; and the engine's key. Containers and their
volumes stay, also those that a restore has made. It refuses while an operation is
under way, or was interrupted.`,
		Example: `  docker snapshot recover
  docker snapshot recover web
  docker snapshot recover --purge`,
		Args:                  cli.RequiresMaxArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeContainers(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			switch {
			case o.purge && len(args) > 0:
				return usageError(cmd, errors.New("--purge is for the whole engine: it takes no container"))
			case o.purge:
				return runPurge(ctx, d, o)
			case o.force:
				return usageError(cmd, errors.New("--force goes with --purge only"))
			}
			return runRecover(ctx, d, o, args)
		}),
	}
	cmd.Flags().BoolVar(&o.purge, "purge", false, "Remove everything that this plugin has made on the engine, except containers and their volumes")
	cmd.Flags().BoolVarP(&o.force, "force", "f", false, "Do not ask before a purge")
	cmd.Flags().BoolVarP(&o.force, "yes", "y", false, "The same as --force")
	o.volumes.addLockFlag(cmd.Flags())
	o.printer.addFlag(cmd.Flags(), recoverResult{}, purgeResult{})
	o.progress.addFlags(cmd.Flags())
	return cmd
}

// runRecover prints what was put right, even if something else failed.
func runRecover(ctx context.Context, d deps, o recoverOptions, args []string) error {
	var name string
	if len(args) > 0 {
		name = args[0]
	}
	done, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]replace.Recovery, error) {
		p = d.advised(p)
		done, err := eng.Recover(ctx, name, p)
		if err != nil || len(done) > 0 || name == "" {
			return done, err
		}
		meant, other := d.containerOfService(ctx, eng, name)
		if meant == "" {
			return nil, other
		}
		return eng.Recover(ctx, meant, p)
	})
	for _, r := range done {
		result := recoverResult{Status: statusRecovered, Timestamp: rfc3339(d.clock.now()), Container: r.Container, Text: r.Text}
		if writeErr := o.printer.print(d.out, r.Container+": "+r.Text, result); writeErr != nil {
			return writeErr
		}
	}
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("the next docker snapshot recover does the rest"))
	}
	if err != nil {
		return d.withRecovery(err)
	}
	if len(done) == 0 && !o.progress.quiet {
		return writeLine(d.err, "Nothing was interrupted.")
	}
	return nil
}
