package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type createOptions struct {
	engine   capture.Options
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

func newCreateCommand(d deps) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create [OPTIONS] CONTAINER [NAME]",
		Short: "Take a snapshot of a container",
		Long: `Take a snapshot of a container and print its ID.

The container may be running, paused or stopped, and stays so. NAME is 1 to 128
letters, digits, '_', '.' and '-', and is unique among the snapshots of the
container. CONTAINER may be a service of the Compose project in the current
directory, if the service has one container.

The content of a bind mount belongs to the host: the snapshot has only its path. A
line says so for each bind mount, unless -q is given or the container has the label
cua.snapshot.policy.binds=known.`,
		Example: `  docker snapshot create web
  docker snapshot create web before-upgrade -m "before the upgrade to 2.0"
  docker snapshot create --trigger before_action --run-id 42 --expires 2w web`,
		Args:                  cli.RequiresRangeArgs(1, 2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeContainers(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return usageError(cmd, err)
			}
			return o.printer.failed(d.out, runCreate(ctx, d, o, args))
		}),
	}
	o.addFlags(cmd.Flags(), d.clock)
	return cmd
}

func (o *createOptions) addFlags(flags *pflag.FlagSet, clock clock) {
	flags.StringVarP(&o.engine.Description, "message", "m", "", "Describe the snapshot")
	flags.Var(opts.NewListOptsRef(&o.engine.Tags, checkTag), "tag", "Add a tag, to filter by")
	flags.Var(keyed(&o.engine.Meta, parseMeta), "meta", "Add a key=value pair of your own")
	flags.Var(checked(&o.engine.Trigger, choicesOf(labels.Triggers()...).check), "trigger", "Say why it is taken (default manual)")
	flags.StringVar(&o.engine.RunID, "run-id", "", "Name the run that it belongs to")
	flags.StringVar(&o.engine.StepID, "step-id", "", "Name the step of the run")
	flags.StringVar(&o.engine.Group, "group", "", "Name the group of snapshots that it belongs to")
	flags.Var(parsed(&o.engine.Expires, "string", func(text string) (time.Time, error) { return parseExpiry(text, clock.now()) }),
		"expires", "Let it expire after a duration (36h, 2w) or at a time (RFC 3339, or a date)")
	flags.BoolVar(&o.engine.Pinned, "pin", false, "Protect it from being removed without --force")
	flags.BoolVar(&o.engine.Reuse, "reuse", false, "Replace the snapshot of that name, once the new one is complete")
	flags.Var(parsed(&o.engine.Pause, "string", parsePause), "pause", "Pause 'all' containers that write to its volumes, the 'target' only, or 'none' (default all)")
	flags.BoolVar(&o.engine.NoPause, "no-pause", false, "The same as --pause=none: what is captured may be torn")
	flags.BoolVar(&o.engine.Volumes.None, "no-volumes", false, "Leave out the content of all volumes")
	flags.Var(opts.NewListOptsRef(&o.engine.Volumes.Only, nil), "volume", "Capture the content of this volume only")
	flags.Var(opts.NewListOptsRef(&o.engine.Volumes.Exclude, nil), "exclude-volume", "Leave out the content of this volume")
	o.volumes.addMakingFlags(flags)
	o.printer.addFlag(flags)
	o.progress.addFlags(flags)
}

// parse takes the arguments, and checks what the options say together.
func (o *createOptions) parse(args []string) error {
	o.engine.Container = args[0]
	if len(args) > 1 {
		o.engine.Name = args[1]
	}
	if o.engine.NoPause && o.engine.Pause != "" && o.engine.Pause != capture.PauseNone {
		return fmt.Errorf("conflicting options: --no-pause and --pause=%s", o.engine.Pause)
	}
	if o.engine.Volumes.None && len(o.engine.Volumes.Only) > 0 {
		return errors.New("conflicting options: --no-volumes and --volume")
	}
	return nil
}

func runCreate(ctx context.Context, d deps, o createOptions, args []string) error {
	if err := checkContainer(args[0]); err != nil {
		return err
	}
	if len(args) > 1 {
		if err := labels.CheckName(args[1]); err != nil {
			return err
		}
	}
	var warned warningList
	s, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (capture.Created, error) {
		return withService(ctx, d, eng, o.engine.Container, func(container string) (capture.Created, error) {
			o.engine.Container = container
			return eng.Create(ctx, o.engine, d.advised(warned.from(p)))
		})
	})
	if err != nil {
		return err
	}
	r := createResult{
		outcome: newOutcome(s.Snapshot, statusCreated, s.Created), Incomplete: s.Incomplete, FrozenMS: s.Frozen.Milliseconds(),
		Warnings: newWords(warned.list),
	}
	if err := o.printer.print(d.out, string(s.ID), r); err != nil {
		return err
	}
	if s.SweepDue { // only now that the result is out, for nobody waits for that
		_, _ = call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (struct{}, error) {
			eng.Sweep(ctx, p)
			return struct{}{}, nil
		})
	}
	if s.Incomplete {
		return fmt.Errorf("snapshot %s is %w: see the warnings", s.ID, errIncomplete)
	}
	return nil
}
