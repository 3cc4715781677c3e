package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

type pruneOptions struct {
	engine   removal.PruneOptions
	filters  []string
	check    bool
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

func newPruneCommand(d deps) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [OPTIONS]",
		Short: "Remove snapshots that have expired, and automatic ones beyond the limits",
		Long: `Remove snapshots that have expired, and automatic ones beyond the limits. Automatic
are those that were not taken by hand: all but those with the trigger manual.

The oldest go first: those that have expired, those that are too old, and then as
many as it takes to get below the limits for each container, in all, and on the
space that they occupy. Without an option a limit is what the labels of the
container say (cua.snapshot.policy.keep and .retention), else the settings
max-snapshots, max-agent, retention-days, max-total and max-size.

These stay: pinned snapshots; those that a container runs on; the way back from the
latest restore in place of a container; the start of a run that has not ended; those
with a name or taken by hand, unless --all is given; and the newest of each
container, unless --all --force is given. Of these only pinned ones and those in use
stay when they have expired.`,
		Example: `  docker snapshot prune
  docker snapshot prune --keep-last 3 --older-than 2d --dry-run
  docker snapshot prune --filter container=web --max-size 2GB --force`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, _ []string) (err error) {
			if o.engine.Filter, err = catalog.ParseFilter(o.filters, d.clock.now()); err != nil {
				return usageError(cmd, err)
			}
			return runPrune(ctx, d, o)
		}),
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *pruneOptions) addFlags(flags *pflag.FlagSet) {
	limits := &o.engine.Limits
	flags.Var(parsed(&limits.KeepLast, "number", pointed(retention.ParseCount)), "keep-last", "Keep so many of each container; 0: all")
	flags.Var(parsed(&limits.OlderThan, "duration", pointed(labels.ParseDuration)), "older-than", "Remove what is older (36h, 7d, 2w); 0: nothing")
	flags.Var(parsed(&limits.MaxTotal, "number", pointed(retention.ParseCount)), "max-total", "Keep so many in all; 0: all")
	flags.Var(parsed(&limits.MaxSize, "bytes", pointed(retention.ParseSize)), "max-size", "Keep what occupies so much in all (500MB, 10GB); 0: all")
	flags.Var(opts.NewListOptsRef(&o.filters, nil), "filter", "Count and remove only snapshots that match key=value, as in ls")
	flags.BoolVarP(&o.engine.All, "all", "a", false, "Count and remove also those with a name, and those taken by hand")
	flags.BoolVarP(&o.engine.Force, "force", "f", false, "Do not ask; with --all, remove even the newest of a container")
	flags.BoolVar(&o.engine.DryRun, "dry-run", false, "Show what would be kept and removed, and why, and change nothing")
	flags.BoolVar(&o.check, "check", false, "Change nothing; exit with 3 if there is something to remove")
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, pruneResult{})
	o.progress.addFlags(flags)
}

// pointed makes a parser for a field that is nil unless the option is given.
func pointed[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(text string) (*T, error) {
		value, err := parse(text)
		return &value, err
	}
}

// overLimitError says that there is something to prune.
type overLimitError struct{ snapshots int }

func (e *overLimitError) Error() string {
	return plural(int64(e.snapshots), "snapshot is", "snapshots are") + " beyond the limits or expired: docker snapshot prune removes them"
}

// Is gives it the exit status of what was done, but is not as it should be.
func (*overLimitError) Is(target error) bool { return target == errIncomplete }

func runPrune(ctx context.Context, d deps, o pruneOptions) error {
	var err error
	if o.engine.Policy, err = d.settings.policy(); err != nil {
		return err
	}
	prune := func() (removal.Pruned, error) {
		return call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (removal.Pruned, error) {
			return eng.Prune(ctx, o.engine, p)
		})
	}
	isDry := o.engine.DryRun || o.check
	asks := !isDry && !o.engine.Force
	o.engine.DryRun = isDry || asks
	result, err := prune()
	if err != nil {
		return err
	}
	if asks && len(result.Removed()) > 0 {
		if err := d.confirm(ctx, describePrune(result)); err != nil {
			return err
		}
		shown := result
		o.engine.DryRun, o.engine.Agreed = false, &shown
		if result, err = prune(); err != nil {
			return err
		}
	}
	if err := o.print(d, result, isDry); err != nil {
		return err
	}
	if number := len(result.Removed()); o.check && number > 0 {
		return &overLimitError{number}
	}
	return o.failures(ctx, result)
}

// failures are the errors of those that could not be removed.
func (o *pruneOptions) failures(ctx context.Context, result removal.Pruned) error {
	var failed []error
	for _, one := range result.All {
		if one.Err != nil && !isNoSnapshot(one.Err) && (ctx.Err() == nil || !errors.Is(one.Err, context.Canceled)) {
			failed = append(failed, fmt.Errorf("snapshot %s: %w", one.Snapshot.Title(), one.Err))
		}
	}
	if ctx.Err() != nil {
		failed = append(failed, context.Cause(ctx))
	}
	return errors.Join(failed...)
}

// describePrune says what will be removed.
func describePrune(planned removal.Pruned) string {
	numbers := map[string]int64{}
	var containers []string
	for _, one := range planned.Removed() {
		name := one.Snapshot.Container.Name
		if numbers[name]++; numbers[name] == 1 {
			containers = append(containers, name)
		}
	}
	lines := []string{"WARNING! This will remove, for good:"}
	for _, name := range containers {
		lines = append(lines, "  - "+plural(numbers[name], "snapshot", "snapshots")+" of "+oneLine(name))
	}
	return strings.Join(append(lines, "--dry-run shows which, and why."), "\n")
}

// pruneResult is what prune prints of a snapshot.
type pruneResult struct {
	outcome
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	DryRun bool   `json:"dry_run"`
}

// pruneTotal is what prune prints at the end.
type pruneTotal struct {
	Status       string   `json:"status"`
	Timestamp    string   `json:"timestamp"`
	RemovedCount int      `json:"removed_count"`
	KeptCount    int      `json:"kept_count"`
	Reclaimed    byteSize `json:"reclaimed"`
	DryRun       bool     `json:"dry_run"`
}

// print writes what was removed. A dry run also shows what is kept; --check only what is not.
func (o *pruneOptions) print(d deps, result removal.Pruned, isDry bool) error {
	if isDry && !o.printer.formats() {
		return o.printTable(d, result)
	}
	total := pruneTotal{Status: statusPruned, Timestamp: rfc3339(d.clock.now()), Reclaimed: byteSize(result.Freed), DryRun: isDry}
	for _, one := range result.All {
		r := pruneResult{newOutcome(one.Snapshot, statusKept, d.clock.now()), string(one.Reason), one.Detail, isDry}
		switch {
		case one.Removed && one.Err == nil:
			total.RemovedCount++
			r.Status = statusRemoved
		case !isDry:
			total.KeptCount++
			continue
		default:
			total.KeptCount++
		}
		if err := o.printer.print(d.out, string(one.Snapshot.ID), r); err != nil {
			return err
		}
	}
	switch {
	case o.printer.format == formatter.JSONFormatKey:
		return writeJSON(d.out, total)
	case o.printer.formats():
		return nil
	}
	return writeLine(d.out, "Total reclaimed space: "+size(result.Freed))
}

// printTable shows what a dry run has found, the removed ones first.
func (o *pruneOptions) printTable(d deps, result removal.Pruned) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "SNAPSHOT ID\tCONTAINER\tNAME\tCREATED\tACTION\tREASON")
	for _, removed := range []bool{true, false} {
		for _, one := range result.All {
			if one.Removed != removed || o.check && !removed {
				continue
			}
			action := map[bool]string{true: "remove", false: "keep"}[removed]
			s := one.Snapshot
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, oneLine(s.Container.Name), oneLine(s.Name), s.Created.UTC().Format(time.DateTime), action, oneLine(one.Detail))
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if o.check && len(result.Removed()) == 0 {
		return nil
	}
	if _, err := text.WriteTo(d.out); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
