package commands

import (
	"context"
	"errors"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/formatter"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
)

type removeOptions struct {
	volumes  volumeOptions
	copies   bool // their copies, and not the snapshots
	all      bool // snapshots of each container
	force    bool
	progress progressOptions
	printer  printer
}

func newRemoveCommand(d deps) *cobra.Command {
	var o removeOptions
	cmd := &cobra.Command{
		Use:     "rm [OPTIONS] SNAPSHOT [SNAPSHOT...]",
		Aliases: []string{"remove"},
		Short:   "Remove one or more snapshots",
		Long: `Remove one or more snapshots, and print the ID of each that was removed.

The name of a container alone does not stand for its newest snapshot here. With --all
it stands for all of them: rm asks once, and then removes those that are not pinned.

A pinned snapshot is only removed with --force. Containers that were made from a
snapshot, or restored in place, stay as they are. They keep the layers that they
use. After the last such container is gone, the next rm, prune or recover frees them.

With --copies it is the other way round: the containers and volumes that restores
have made of the snapshots are removed, and the snapshots stay. The names of what
was removed are printed. Containers that were restored in place are no copies.
If a copy runs, or another container mounts a volume of one, nothing of that
snapshot is removed. With --force copies that run are removed, too, and a volume
that another container mounts stays.`,
		Example: `  docker snapshot rm web:before-upgrade
  docker snapshot rm --all web
  docker snapshot rm --copies --force web:before-upgrade
  docker snapshot ls -q --filter expired=true | xargs -r docker snapshot rm`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.force { // rm -f $(docker snapshot ls -q …) may find nothing to remove
				return nil
			}
			return cli.RequiresMinArgs(1)(cmd, args)
		},
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     o.completeRemoved(d),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if o.all {
				var err error
				if args, err = o.expandAll(ctx, d, args); err != nil {
					return err
				}
			}
			if o.copies {
				return runRemoveCopies(ctx, d, o, args)
			}
			return runRemove(ctx, d, o, args)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.force, "force", "f", false, "Do not ask; remove pinned ones too, and with --copies running ones; succeed even if one is gone, or without arguments")
	flags.BoolVar(&o.all, "all", false, "Remove all snapshots of each CONTAINER given instead")
	flags.BoolVar(&o.copies, "copies", false, "Remove the containers and volumes that restores have made of the snapshots, and keep these")
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, removeResult{}, removeCopiesResult{})
	o.progress.addFlags(flags)
	return cmd
}

// runRemove goes on after an error, so that one wrong word does not keep the rest.
func runRemove(ctx context.Context, d deps, o removeOptions, words []string) error {
	if len(words) == 0 {
		return nil
	}
	_, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (none struct{}, err error) {
		return none, o.printRemoved(ctx, d, removeAll(ctx, d, eng, words, o, p))
	})
	return err
}

// printRemoved prints what was removed. It returns why the rest was not.
func (o removeOptions) printRemoved(ctx context.Context, d deps, removals []removal.Removal) error {
	var failures []error
	for _, r := range removals {
		err := r.Err
		if isNoSnapshot(err) && o.force {
			failures = append(failures, o.printMissing(d, r.Word, err))
			continue
		}
		if err == nil {
			err = o.printer.print(d.out, string(r.Snapshot.ID), removeResult{newOutcome(r.Snapshot, statusRemoved, d.clock.now())})
		}
		if err = o.printer.failed(d.out, err); ctx.Err() == nil || !errors.Is(err, context.Canceled) { // that is said once
			failures = append(failures, err)
		}
	}
	if ctx.Err() != nil {
		failures = append(failures, errors.New("docker snapshot ls shows which snapshots are still there"))
	}
	return errors.Join(failures...)
}

// printMissing says that a word means no snapshot, which is no error.
func (o removeOptions) printMissing(d deps, word string, err error) error {
	if o.printer.format == formatter.JSONFormatKey {
		return writeJSON(d.out, missingResult{Status: statusMissing, Word: word})
	}
	return writeLine(d.err, err.Error())
}

// removeAll removes the snapshots that words mean. A word that means none is tried again as
// the service of a container.
func removeAll(ctx context.Context, d deps, eng engine, words []string, o removeOptions, p plan.Progress) []removal.Removal {
	results := make([]removal.Removal, len(words))
	var good []int
	for i, word := range words {
		results[i] = removal.Removal{Word: word, Err: checkSnapshot(word)}
		if results[i].Err == nil {
			good = append(good, i)
		}
	}
	removeThese(ctx, eng, results, good, o, p)
	removeThese(ctx, eng, results, d.nameContainers(ctx, eng, results), o, p)
	return results
}

// removeThese removes the snapshots that the words of the chosen results mean.
func removeThese(ctx context.Context, eng engine, results []removal.Removal, chosen []int, o removeOptions, p plan.Progress) {
	if len(chosen) == 0 {
		return
	}
	words := convert(chosen, func(i int) string { return results[i].Word })
	for i, r := range eng.Remove(ctx, words, removal.Options{Force: o.force}, p) {
		results[chosen[i]] = r
	}
}

// nameContainers replaces a service by its container in the words that meant no snapshot. It
// returns the indices of the words that it changed.
func (d deps) nameContainers(ctx context.Context, eng engine, results []removal.Removal) (named []int) {
	for i := range results {
		r := &results[i]
		if !isNoSnapshot(r.Err) {
			continue
		}
		meant, other := d.containerOfService(ctx, eng, r.Word)
		if meant != "" {
			r.Word = meant
			named = append(named, i)
		} else if other != nil {
			r.Err = errors.Join(r.Err, other)
		}
	}
	return named
}
