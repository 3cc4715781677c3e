package commands

import (
	"context"
	"errors"
	"time"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type annotateOptions struct {
	engine            capture.Annotation
	name, description string
	expires           time.Time
	pin, unpin        bool
	progress          progressOptions
	printer           printer
}

func newAnnotateCommand(d deps) *cobra.Command {
	var o annotateOptions
	cmd := &cobra.Command{
		Use:   "annotate [OPTIONS] SNAPSHOT",
		Short: "Change the name, tags and the like of a snapshot",
		Long: `Change what is known about a snapshot, and print its ID.

What it holds, and its ID, stay the same. Its image is another one afterwards, with the
same layers. Containers that were made from it are still known to be.`,
		Example: `  docker snapshot annotate --name before-upgrade web:latest
  docker snapshot annotate --pin --tag release -m "the last good one" web:before-upgrade
  docker snapshot annotate --name '' --untag release --expires 2w web:before-upgrade`,
		Args:                  cli.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeSnapshots(d, 1),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.parse(cmd.Flags(), args); err != nil {
				return usageError(cmd, err)
			}
			return o.printer.failed(d.out, runAnnotate(ctx, d, o))
		}),
	}
	o.addFlags(cmd.Flags(), d.clock)
	return cmd
}

func (o *annotateOptions) addFlags(flags *pflag.FlagSet, clock clock) {
	flags.StringVar(&o.name, "name", "", "Give it this name, instead of the one that it has; '' for none")
	flags.StringVarP(&o.description, "message", "m", "", "Describe it, instead of as before")
	flags.Var(opts.NewListOptsRef(&o.engine.Tag, checkTag), "tag", "Add a tag")
	flags.Var(opts.NewListOptsRef(&o.engine.Untag, checkTag), "untag", "Remove a tag")
	flags.Var(keyed(&o.engine.Meta, parseMeta), "meta", "Add a key=value pair of your own, or change its value")
	flags.Var(opts.NewListOptsRef(&o.engine.Unmeta, checkTag), "unmeta", "Remove the pair with this key")
	flags.BoolVar(&o.pin, "pin", false, "Protect it from being removed without --force")
	flags.BoolVar(&o.unpin, "unpin", false, "Do not protect it any more")
	flags.Var(parsed(&o.expires, "string", func(text string) (time.Time, error) { return parseExpiry(text, clock.now()) }),
		"expires", "Let it expire after a duration (36h, 2w) or at a time (RFC 3339, or a date); '' for never")
	o.printer.addFlag(flags, annotateResult{})
	o.progress.addFlags(flags)
}

// parse takes the argument, and the options that were given.
func (o *annotateOptions) parse(flags *pflag.FlagSet, args []string) error {
	o.engine.Snapshot = args[0]
	if o.pin && o.unpin {
		return errors.New("conflicting options: --pin and --unpin")
	}
	changes := 0
	for _, name := range []string{"name", "message", "tag", "untag", "meta", "unmeta", "pin", "unpin", "expires"} {
		if flags.Changed(name) {
			changes++
		}
	}
	if changes == 0 {
		return errors.New("nothing to change: use --name, --message, --tag, --untag, --meta, --unmeta, --pin, --unpin or --expires")
	}
	if flags.Changed("name") {
		o.engine.Name = &o.name
	}
	if flags.Changed("message") {
		o.engine.Description = &o.description
	}
	if flags.Changed("expires") {
		o.engine.Expires = &o.expires
	}
	if o.pin || o.unpin {
		o.engine.Pinned = &o.pin
	}
	return nil
}

func runAnnotate(ctx context.Context, d deps, o annotateOptions) error {
	if err := checkSnapshot(o.engine.Snapshot); err != nil {
		return err
	}
	s, err := call(d, defaultVolumes(), o.progress, func(eng engine, p plan.Progress) (catalog.Snapshot, error) {
		return withSnapshot(ctx, d, eng, o.engine.Snapshot, func(word string) (catalog.Snapshot, error) {
			o.engine.Snapshot = word
			return eng.Annotate(ctx, o.engine, p)
		})
	})
	if err != nil {
		return err
	}
	return o.printer.print(d.out, string(s.ID), annotateResult{newOutcome(s, statusAnnotated, s.Updated)})
}
