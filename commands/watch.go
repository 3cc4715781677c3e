package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
)

type watchOptions struct {
	engine  snapshot.WatchOptions
	volumes volumeOptions
	format  string
}

// logFormats are the values of --format.
var logFormats = choices{logText, logJSON}

func newWatchCommand(d deps) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch [OPTIONS] [CONTAINER...]",
		Short: "Take snapshots of containers by time and by what happens to them",
		Long: `Take snapshots of containers by time and by what happens to them, and remove those
that are not needed any more.

It stays in the foreground until SIGINT or SIGTERM, after which its exit status is 0.
It goes on when the engine is restarted, follows containers that come and go, and
writes a line for everything that it does.

Options say when; what they leave open, these labels of a container say:

  cua.snapshot.policy.interval    15m, or 1d: while it runs
  cua.snapshot.policy.schedule    the five fields of cron: 30 2 * * *
  cua.snapshot.policy.on          some of die, oom, unhealthy
  cua.snapshot.policy.memory      85%: when it uses so much of its memory limit
  cua.snapshot.policy.keep        how many automatic snapshots to keep: 10
  cua.snapshot.policy.retention   how old they may become: 7d

Without CONTAINER, it watches every container with one of the first four. Snapshots
that have expired are removed within a minute: those of CONTAINER or, without it, all.`,
		Example: `  docker snapshot watch
  docker snapshot watch --interval 15m --keep 20 db
  docker snapshot watch --on die,oom --memory 85% --format json agent`,
		Args: func(_ *cobra.Command, args []string) error {
			for i, name := range args {
				if slices.Contains(args[:i], name) {
					return fmt.Errorf("container %s is named twice", name)
				}
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeWatched(d),
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, args []string) error {
			o.engine.Containers = args
			return runWatch(ctx, d, o)
		}),
	}
	flags := cmd.Flags()
	when := &o.engine.When
	flags.Var(checked(&when.Interval, checkedBy(watch.ParseInterval)), "interval", "Take a snapshot every so often (15m, 1d)")
	flags.Var(checked(&when.Schedule, checkedBy(watch.ParseSchedule)), "schedule", "Take one at these times: the five fields of cron")
	flags.Var(checked(&when.On, checkedBy(watch.ParseEvents)), "on", "Take one at these events: 'die', 'oom', 'unhealthy'")
	flags.Var(checked(&when.Memory, checkedBy(watch.ParseMemory)), "memory", "Take one when so much of the memory limit is used (85%)")
	flags.Var(parsed(&o.engine.Limits.KeepLast, "number", parseKeep), "keep", "Keep so many automatic snapshots of each; 0 means no limit")
	flags.Var(parsed(&o.engine.Limits.OlderThan, "duration", parseRetention), "retention", "Keep automatic snapshots so long; 0s means no limit")
	flags.Var(checked(&o.format, logFormats.check), "format", "Write lines of 'text' or 'json' (default text)")
	o.volumes.addMakingFlags(flags)
	return cmd
}

func runWatch(ctx context.Context, d deps, o watchOptions) error {
	for _, name := range o.engine.Containers {
		if err := checkContainer(name); err != nil {
			return err
		}
	}
	var err error
	if o.engine.Policy, err = d.settings.policy(); err != nil {
		return err
	}
	eng, err := d.engine(o.volumes)
	if err != nil {
		return err
	}
	return eng.Watch(ctx, o.engine, (&watchLog{out: d.out, format: o.format, now: d.clock.now}).tell)
}

// checkedBy makes a check of a parser.
func checkedBy[T any](parse func(string) (T, error)) func(string) error {
	return func(word string) error {
		if word == "" {
			return errors.New("it is empty")
		}
		_, err := parse(word)
		return err
	}
}

func parseKeep(text string) (*int, error) {
	n, err := retention.ParseCount(text)
	return &n, err
}

func parseRetention(text string) (*time.Duration, error) {
	age, err := labels.ParseDuration(text)
	return &age, err
}

// completeWatched completes any number of containers.
func completeWatched(d deps) cobra.CompletionFunc {
	return completion(func(ctx context.Context, eng engine, _ []string, _ string) ([]catalog.Candidate, error) {
		return eng.Containers(ctx)
	}).complete(d)
}

// completeEvents completes a list of events, with commas between them.
func completeEvents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return choicesOf(watch.Events()...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
