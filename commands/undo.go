package commands

import (
	"context"
	"errors"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// undoOptions are the options of undo. Most of a restore in place are not asked for again: they are those of the restore that is
// taken back.
type undoOptions struct {
	restoreOptions

	container string
}

func newUndoCommand(d deps) *cobra.Command {
	o := undoOptions{restoreOptions: restoreOptions{replace: true}}
	cmd := &cobra.Command{
		Use:   "undo [OPTIONS] CONTAINER",
		Short: "Take back the last restore in place of a container",
		Long: `Take back the last restore in place of a container (restore --replace, promote), and
print the container's ID.

It restores the safety snapshot that the restore took first, and puts back no more than
the restore did: after a restore with --only, the same volumes. It takes back
restores of several containers as a whole.

Each further undo goes back one restore more, as in an editor. A restore after an undo
begins anew: undo takes back that one first. To go forward again, restore the snapshot
whose ID undo prints.

A restore with --no-safety cannot be taken back, nor those before it: then restore a
snapshot.`,
		Example: `  docker snapshot undo web
  docker snapshot undo --force web`,
		Args:                  cli.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     upTo(1, completeUndoable(d)),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.container = args[0]
			if err := errors.Join(checkContainer(args[0]), checkWaitingFlags(cmd.Flags(), o.engine.Wait, "wait")); err != nil {
				return usageError(cmd, err)
			}
			return runUndo(ctx, d, o)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.force, "force", "f", false, "Do not ask before replacing")
	flags.BoolVarP(&o.force, "yes", "y", false, "The same as --force")
	flags.BoolVar(&o.engine.StopOthers, "stop-others", false, "Stop other containers that hold the volumes, and start them again")
	flags.BoolVar(&o.engine.Wait, "wait", true, "Wait until the container is healthy, has run for --settle, or has ended with 0; else put everything back")
	addWaitingFlags(flags, &o.engine.Waiting)
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, restoreResult{})
	o.progress.addFlags(flags)
	return cmd
}

// completeUndoable completes the names of containers that have something to undo.
func completeUndoable(d deps) cobra.CompletionFunc {
	return completion(func(ctx context.Context, eng engine, _ []string, _ string) ([]catalog.Candidate, error) {
		return eng.Undoable(ctx)
	}).complete(d)
}

// find finds the restores in place that take the last one back. The container may be named by its service of Compose.
func (o *undoOptions) find(ctx context.Context, d deps, eng engine) ([]replace.Options, error) {
	return withService(ctx, d, eng, o.container, func(container string) ([]replace.Options, error) {
		all, err := eng.FindUndo(ctx, container)
		for i := range all {
			all[i].Waiting = o.engine.Waiting
			all[i].StopOthers = all[i].StopOthers || o.engine.StopOthers
		}
		return all, err
	})
}

func runUndo(ctx context.Context, d deps, o undoOptions) error {
	asks, err := o.asks(d)
	if err != nil {
		return err
	}
	var question string
	found, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]replace.Options, error) {
		all, err := o.find(ctx, d, eng)
		if err == nil && asks {
			question, err = d.describeUndo(ctx, eng, all, p)
		}
		return all, err
	})
	if err != nil {
		return d.withRecovery(d.withOtherFlags(err, found))
	}
	if asks {
		if err := d.confirm(ctx, question); err != nil {
			return err
		}
	}
	var warned warningList
	o.engine.Only, o.engine.Paths = found[0].Only, found[0].Paths
	all, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]replace.Result, error) {
		during := p
		if asks {
			during = withoutNotes(p) // the plan has told them
		}
		all, err := eng.ReplaceTogether(ctx, found, d.advised(warned.from(during)))
		d.noteReplaced(p, o.engine, all...)
		return all, err
	})
	if err != nil {
		return d.withRecovery(withGuard(d.withOtherFlags(err, found)))
	}
	return o.printUndone(ctx, d, all, &warned)
}

// withOtherFlags adds to problems that name flags of restore the restore command that takes them.
func (d deps) withOtherFlags(err error, all []replace.Options) error {
	if _, ok := errors.AsType[*plan.ProblemsError](err); !ok {
		return err
	}
	ids := convert(all, func(o replace.Options) string { return o.Snapshot })
	restore := d.commandLine(append([]string{"restore", "--replace"}, ids...)...)
	return errors.Join(err, errors.New("of these flags, undo has only --stop-others; for the others, type: "+restore))
}

// describeUndo says what would be done.
func (d deps) describeUndo(ctx context.Context, eng engine, all []replace.Options, p plan.Progress) (string, error) {
	dry := make([]replace.Options, len(all))
	for i, o := range all {
		o.DryRun = true
		dry[i] = o
	}
	planned, err := planSettled(ctx, eng, p, func() ([]replace.Result, error) { return eng.ReplaceTogether(ctx, dry, p) })
	now := d.clock.now()
	return strings.Join(convert(planned, func(r replace.Result) string { return describeReplace(r, now) }), "\n"), err
}

// printUndone writes the results, and which snapshots have the states that undo has replaced.
func (o *undoOptions) printUndone(ctx context.Context, d deps, all []replace.Result, warned *warningList) error {
	for _, r := range all {
		if r.Safety == nil {
			continue
		}
		defer d.tidyAfter(ctx, r.Safety.Trigger)
		if err := writeLine(d.err, "The replaced state of "+r.Name+" is snapshot "+string(r.Safety.ID)); err != nil {
			return err
		}
	}
	return o.printEach(ctx, d, all, "", warned)
}
