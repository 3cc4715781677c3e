package commands

import (
	"context"
	"errors"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

type removeOptions struct {
	volumes  *volumeOptions
	force    bool
	progress progressOptions
	printer  printer
}

func newRemoveCommand(d deps) *cobra.Command {
	o := removeOptions{volumes: d.volumes}
	cmd := &cobra.Command{
		Use:     "rm [OPTIONS] SNAPSHOT [SNAPSHOT...]",
		Aliases: []string{"remove"},
		Short:   "Remove one or more snapshots",
		Long: `Remove one or more snapshots, and print the ID of each that was removed.

A pinned snapshot is not removed without --force. Containers that were made from
a snapshot, or restored in place, go on: they keep the layers that they use,
which the engine frees when the last of them is removed.`,
		Example: `  docker snapshot rm web:before-upgrade
  docker snapshot ls -q --filter expired=true | xargs -r docker snapshot rm`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.force { // rm -f $(docker snapshot ls -q …) may find nothing to remove
				return nil
			}
			return cli.RequiresMinArgs(1)(cmd, args)
		},
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeSnapshots(d, 0),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return runRemove(ctx, d, o, args)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.force, "force", "f", false, "Remove pinned ones too, and do not fail for those that are gone, or if there are none")
	o.volumes.addFlags(flags)
	o.printer.addFlag(flags)
	o.progress.addFlags(flags)
	return cmd
}

// runRemove goes on after an error, so that one word too many does not keep the rest.
func runRemove(ctx context.Context, d deps, o removeOptions, words []string) error {
	if len(words) == 0 {
		return nil
	}
	show, err := d.progress(o.progress)
	if err != nil {
		return o.printer.failed(d.out, err)
	}
	defer show.close()
	eng, err := d.engine()
	if err != nil {
		return o.printer.failed(d.out, err)
	}
	var failures []error
	for _, word := range words {
		if ctx.Err() != nil {
			break
		}
		err := removeOne(ctx, d, o, eng, word, show)
		if _, gone := errors.AsType[*snapshot.NotFoundError](err); gone && o.force {
			err = writeLine(d.err, err.Error())
		}
		failures = append(failures, o.printer.failed(d.out, err))
	}
	return errors.Join(append(failures, context.Cause(ctx))...)
}

func removeOne(ctx context.Context, d deps, o removeOptions, eng engine, word string, show display) error {
	if err := checkSnapshot(word); err != nil {
		return err
	}
	s, err := eng.Remove(ctx, word, snapshot.RemoveOptions{Force: o.force}, show.show)
	if err != nil {
		return err
	}
	return o.printer.print(d.out, string(s.ID), removeResult{newOutcome(s, statusRemoved, d.clock.now())})
}
