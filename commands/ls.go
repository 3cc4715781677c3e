package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/command/formatter"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type listOptions struct {
	engine  catalog.ListOptions
	filters []string
	lost    bool // those that have lost their images
	quiet   bool
	format  string
	noTrunc bool
}

var sortOrders = choicesOf(catalog.SortCreated, catalog.SortSize, catalog.SortName)

func newListCommand(d deps) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "ls [OPTIONS] [CONTAINER]",
		Aliases: []string{"list"},
		Short:   "List snapshots",
		Long: `List the snapshots on the engine, or those of one container, newest first.

The columns KIND, LINE, PINNED, EXPIRES and DESCRIPTION appear if a snapshot in the
list has a value for them. On a terminal that is too narrow, columns disappear in
this order: KIND, LINE, DESCRIPTION, TRIGGER, VOLUMES, SIZE, EXPIRES, PINNED,
CONTAINER, CREATED, NAME. --no-trunc shows all.

SIZE is what taking the snapshot added on the engine: its writable layer, and what
its volumes added to the store. What it shares with an earlier snapshot is counted
there.

With --lost it lists instead the snapshots whose images somebody else has removed, as
docker system prune -a does. What their volumes held is kept for a while, and
docker snapshot restore --lost brings it back.

Filters are key=value. Those with the same key are alternatives; every key that
occurs must match. The keys:
  container, tag, trigger, run, step, group    what create recorded
  kind, line      kind=state, and the line of a state
  name            a part of the snapshot's name, or a regular expression that
                  matches one, as in docker ps: name=^nightly-
  label           a label of the container: KEY or KEY=VALUE
  meta.KEY        what --meta recorded
  larger, smaller a size, such as 1GB
  store           the volume that holds what its volumes had
  before, since   a snapshot, a time (RFC 3339) or an age (36h, 2w)
  expired, pinned true or false`,
		Example: `  docker snapshot ls web
  docker snapshot ls --filter trigger=manual --filter since=2w --sort size
  docker snapshot ls --format '{{.ID}} {{.Description}}'`,
		Args:                  cli.RequiresMaxArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeContainers(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.parse(d); err != nil {
				return usageError(cmd, err)
			}
			return runList(ctx, d, o, args)
		}),
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *listOptions) addFlags(flags *pflag.FlagSet) {
	flags.VarP(opts.NewListOptsRef(&o.filters, nil), "filter", "f", "Show only snapshots that match key=value")
	flags.StringVar(&o.engine.Search, "search", "", "Show only those with this text in name or description")
	flags.Var(checked(&o.engine.Sort, sortOrders.check), "sort", "Sort by 'created', 'size' or 'name' (default created)")
	flags.BoolVarP(&o.engine.Reverse, "reverse", "r", false, "Reverse the order")
	flags.IntVarP(&o.engine.Last, "last", "n", 0, "Show only the first n of that order")
	flags.BoolVar(&o.lost, "lost", false, "Show the snapshots that have lost their images, and until when their volumes are kept")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "Show IDs only")
	flags.Var(checked(&o.format, checkListFormat), "format", "Format the list: 'table', 'table TEMPLATE', 'json', or a Go template")
	flags.BoolVar(&o.noTrunc, "no-trunc", false, "Show long texts and IDs whole")
}

// parse reads the filters, and checks the rest.
func (o *listOptions) parse(d deps) (err error) {
	if o.engine.Last < 0 {
		return errors.New("invalid --last: it is negative")
	}
	o.engine.Filter, err = catalog.ParseFilter(o.filters, d.clock.now())
	return err
}

func runList(ctx context.Context, d deps, o listOptions, args []string) error {
	if len(args) > 0 {
		if err := checkContainer(args[0]); err != nil {
			return err
		}
		o.engine.Container = args[0]
	}
	format := string(idsFormat)
	if !o.quiet {
		var err error
		if format, err = d.settings.value(settingFormat, o.format, formatter.TableFormatKey); err != nil {
			return err
		}
	}
	if o.lost {
		return o.listLost(ctx, d, formatter.Format(format))
	}
	list, err := call(d, defaultVolumes(), progressOptions{}, func(eng engine, p plan.Progress) ([]catalog.Snapshot, error) {
		return withService(ctx, d, eng, o.engine.Container, func(container string) ([]catalog.Snapshot, error) {
			o.engine.Container = container
			return eng.List(ctx, o.engine, d.advised(p))
		})
	})
	if err != nil {
		return err
	}
	return writeBuffered(d, func(text *bytes.Buffer) error { return o.write(text, list, d, formatter.Format(format)) })
}

// writeBuffered writes what write puts into a buffer. The formatter writes cell by cell and tells nobody if that fails.
func writeBuffered(d deps, write func(*bytes.Buffer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if _, err := text.WriteTo(d.out); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}

// write writes the list. The table without a template leaves out columns for which there
// is no room.
func (o *listOptions) write(text *bytes.Buffer, list []catalog.Snapshot, d deps, format formatter.Format) error {
	if format == formatter.TableFormatKey {
		width := 0
		if !o.noTrunc {
			width = d.out.width()
		}
		return writeTable(text, list, d.clock.now(), width, !o.noTrunc)
	}
	return writeList(formatter.Context{Output: text, Format: format, Trunc: format.IsTable() && !o.noTrunc}, list, d.clock.now())
}
