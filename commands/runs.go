package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/formatter"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

type runsListOptions struct {
	quiet  bool
	format string
}

func newRunsCommand(d deps) *cobra.Command {
	var o runsListOptions
	cmd := &cobra.Command{
		Use:   "runs [OPTIONS] [COMMAND]",
		Short: "Show what is known of runs",
		Long: `Show what is known of runs: what docker snapshot run has run, which snapshots it
took, and how it ended. Without a command it lists them, as runs ls does.

A run is unfinished until its command has ended; so it stays if its client was killed.`,
		Example: `  docker snapshot runs
  docker snapshot runs inspect 42
  docker snapshot runs rm 42`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE:                  adapt(func(ctx context.Context, _ *cobra.Command, _ []string) error { return runRunsList(ctx, d, o) }),
	}
	o.addFlags(cmd)
	cmd.AddCommand(newRunsListCommand(d), newRunsInspectCommand(d), newRunsRemoveCommand(d), newRunsAnnotateCommand(d))
	return cmd
}

func (o *runsListOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "Show the names of runs only")
	cmd.Flags().Var(checked(&o.format, checkRunsFormat), "format", "Format the list: 'table', 'table TEMPLATE', 'json', or a Go template")
}

func newRunsListCommand(d deps) *cobra.Command {
	var o runsListOptions
	cmd := &cobra.Command{
		Use:     "ls [OPTIONS]",
		Aliases: []string{"list"},
		Short:   "List runs",
		Long:    "List runs, the newest first. While the session of a run is written, for a tenth of a second, the list may lack it.",
		Example: `  docker snapshot runs ls
  docker snapshot runs ls --format json`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE:                  adapt(func(ctx context.Context, _ *cobra.Command, _ []string) error { return runRunsList(ctx, d, o) }),
	}
	o.addFlags(cmd)
	return cmd
}

// runsTable is the table of runs.
const runsTable formatter.Format = `table {{.RunID}}\t{{.Container}}\t{{.Status}}\t{{.ExitCode}}\t{{.StartedSince}}\t{{.Snapshots}}\t{{.Command}}`

func runRunsList(ctx context.Context, d deps, o runsListOptions) error {
	var ids existing
	all, err := call(d, defaultVolumes(), progressOptions{}, func(eng engine, p plan.Progress) (all []session.Session, err error) {
		if all, err = eng.Sessions(ctx); err != nil || o.quiet {
			return all, err
		}
		ids, err = existingSnapshots(ctx, eng, p)
		return all, err
	})
	if err != nil {
		return err
	}
	format := formatter.Format(o.format)
	switch {
	case o.quiet:
		format = "{{.RunID}}"
	case format == "" || format == formatter.TableFormatKey:
		format = runsTable
	}
	var text strings.Builder
	if err := writeRuns(formatter.Context{Output: &text, Format: format}, all, ids, d.clock.now()); err != nil {
		return err
	}
	if _, err := io.WriteString(d.out, text.String()); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}

func newRunsInspectCommand(d deps) *cobra.Command {
	var p printer
	cmd := &cobra.Command{
		Use:   "inspect [OPTIONS] RUN [RUN...]",
		Short: "Display everything about one or more runs",
		Long:  "Display everything about one or more runs as JSON.",
		Example: `  docker snapshot runs inspect 42
  docker snapshot runs inspect --format '{{.Status}} {{.ExitCode}}' 42`,
		Args:                  cli.RequiresMinArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeRuns(d, 0),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return runRunsInspect(ctx, d, p, args)
		}),
	}
	cmd.Flags().VarP(p.option(runDetails{}), "format", "f", "Format the output: 'json', or a Go template")
	return cmd
}

func runRunsInspect(ctx context.Context, d deps, p printer, words []string) error {
	eng, err := d.engine(defaultVolumes())
	if err != nil {
		return err
	}
	ids, err := existingSnapshots(ctx, eng, nil)
	if err != nil {
		return err
	}
	inspector := p.inspector(d.out)
	var failures []error
	for _, word := range words {
		s, err := eng.Session(ctx, word)
		if err == nil {
			whole := newRunDetails(s, ids)
			var raw []byte
			if raw, err = json.Marshal(whole); err == nil {
				err = inspector.Inspect(whole, raw)
			}
		}
		failures = append(failures, p.failed(d.out, err))
	}
	if err := inspector.Flush(); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return errors.Join(failures...)
}

func newRunsRemoveCommand(d deps) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:                   "rm [OPTIONS] RUN [RUN...]",
		Aliases:               []string{"remove"},
		Short:                 "Remove what is known of one or more runs",
		Long:                  "Remove what is known of one or more runs. Their snapshots stay, but RUN#0 and the like mean none of them any more.",
		Example:               `  docker snapshot runs rm 42`,
		Args:                  cli.RequiresMinArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeRuns(d, 0),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return runRunsRemove(ctx, d, force, args)
		}),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "Do not fail if one is gone")
	return cmd
}

// runRunsRemove goes on after an error, so that one wrong word does not keep the rest.
func runRunsRemove(ctx context.Context, d deps, force bool, words []string) error {
	eng, err := d.engine(defaultVolumes())
	if err != nil {
		return err
	}
	var failures []error
	for _, word := range words {
		err := eng.RemoveSession(ctx, word)
		if _, none := errors.AsType[*catalog.RunNotFoundError](err); none && force {
			continue
		}
		if err == nil {
			err = writeLine(d.out, word)
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func newRunsAnnotateCommand(d deps) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "annotate [OPTIONS] RUN",
		Short: "Keep network events of your own with a run",
		Long: `Keep network events of your own with a run: a JSON list, such as an audit log of a
proxy. It takes the place of an earlier one.`,
		Example: `  docker snapshot runs annotate 42 --network-events events.json
  ./audit | docker snapshot runs annotate 42 --network-events -`,
		Args:                  cli.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeRuns(d, 1),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if file == "" {
				return usageError(cmd, errors.New("nothing to keep: use --network-events"))
			}
			return runRunsAnnotate(ctx, d, file, args[0])
		}),
	}
	cmd.Flags().StringVar(&file, "network-events", "", "Read the list from this file; -: from the standard input")
	return cmd
}

func runRunsAnnotate(ctx context.Context, d deps, name, runID string) error {
	events, err := readEvents(d, name)
	if err != nil {
		return err
	}
	eng, err := d.engine(defaultVolumes())
	if err != nil {
		return err
	}
	if err := eng.AnnotateSession(ctx, runID, events); err != nil {
		return err
	}
	return writeLine(d.out, runID)
}

// readEvents reads a file, or the standard input, as far as it is worth: what is longer is refused.
func readEvents(d deps, name string) ([]byte, error) {
	var in io.Reader = d.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read network events: %w", err)
		}
		defer file.Close()
		in = file
	}
	events, err := io.ReadAll(io.LimitReader(in, session.MaxNetworkBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read network events: %w", err)
	}
	return events, nil
}
