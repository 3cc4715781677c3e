package commands

import (
	"context"
	"errors"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
)

// When exec takes a snapshot.
const (
	whenAfter  = "after"
	whenBefore = "before"
	whenBoth   = "both"
)

var whenChoices = choices{whenAfter, whenBefore, whenBoth}

type execOptions struct {
	engine   runs.ActionOptions
	when     string
	docker   execution
	volumes  volumeOptions
	progress progressOptions
}

func newExecCommand(d deps) *cobra.Command {
	o := execOptions{when: whenAfter}
	cmd := &cobra.Command{
		Use:   "exec [OPTIONS] CONTAINER COMMAND [ARG...]",
		Short: "Execute a command in a container, with a snapshot before or after it",
		Long: `Execute a command in a container as docker exec does, with a snapshot before or after
it. Its input, output and exit status pass straight through. A snapshot that fails is
a warning, and never keeps the command.

Within docker snapshot run --interval every_action, the run takes the snapshot after
the command.`,
		Example: `  docker snapshot exec web apt-get install -y curl
  docker snapshot exec --when both -it db psql`,
		Args:                  cli.RequiresMinArgs(2), //nolint:mnd // a container and a word
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeRun(d),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.engine.Timeout <= 0 {
				return usageError(cmd, errors.New("invalid --snapshot-timeout: it has to be longer than 0"))
			}
			return adapt(func(ctx context.Context, _ *cobra.Command, args []string) error { return runExec(ctx, d, o, args) })(cmd, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *execOptions) addFlags(flags *pflag.FlagSet) {
	flags.Var(checked(&o.when, whenChoices.check), "when", "Take a snapshot 'after' the command, 'before' it, or 'both' (default after)")
	flags.BoolVarP(&o.docker.interactive, "interactive", "i", false, "Keep the command's standard input open")
	flags.BoolVarP(&o.docker.tty, "tty", "t", false, "Give the command a terminal")
	flags.StringVarP(&o.docker.user, "user", "u", "", "Execute it as this user: NAME or UID, and perhaps :GROUP or :GID")
	flags.StringVarP(&o.docker.directory, "workdir", "w", "", "Execute it in this directory of the container")
	flags.VarP(opts.NewListOptsRef(&o.docker.env, opts.ValidateEnv), "env", "e", "Set an environment variable")
	flags.DurationVar(&o.engine.Timeout, "snapshot-timeout", runs.DefaultTimeout, "Give up a snapshot that takes longer, waiting for locks included")
	o.volumes.addMakingFlags(flags)
	o.progress.addFlags(flags)
}

// runExec executes the command. Its exit status is that of the command.
func runExec(ctx context.Context, d deps, o execOptions, args []string) error {
	if err := checkContainer(args[0]); err != nil {
		return err
	}
	show, err := newStage(d, o.progress)
	if err != nil {
		return err
	}
	defer show.close()
	if o.engine.Policy, err = d.settings.policy(); err != nil {
		return err
	}
	eng, err := d.engine(o.volumes)
	if err != nil {
		return err
	}
	o.docker.command = args[1:]
	status := 0
	_, err = withService(ctx, d, eng, args[0], func(container string) (struct{}, error) {
		o.engine.Container = container
		o.within(d)
		return struct{}{}, eng.Around(ctx, o.engine, func(ctx context.Context, id string) error {
			show.close()
			var err error
			status, err = d.execute(ctx, id, o.docker)
			return errors.Join(err, show.open())
		}, d.advised(show.progress))
	})
	d.tidyAfter(ctx, labels.TriggerAfterAction)
	if err == nil && status != 0 {
		return &PassedStatus{Status: status}
	}
	return err
}

// within takes what a run around this command has named.
func (o *execOptions) within(d deps) {
	container, runID := d.runDefaults()
	o.engine.RunID = runID
	interval, _ := d.settings.environment(variableInterval)
	o.engine.Before, o.engine.After = "", labels.TriggerAfterAction
	if o.when != whenAfter {
		o.engine.Before = labels.TriggerBeforeAction
	}
	if o.when == whenBefore || container == o.engine.Container && interval == string(retention.IntervalEveryAction) {
		o.engine.After = ""
	}
}
