package commands

import (
	"context"
	"errors"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runs"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// The variables that the command of a run sees. Create takes them for its defaults.
const (
	variableContainer = "DOCKER_SNAPSHOT_CONTAINER"
	variableRunID     = "DOCKER_SNAPSHOT_RUN_ID"
	variableInterval  = "DOCKER_SNAPSHOT_RUN_INTERVAL"
)

type runOptions struct {
	engine    runs.Options
	overrides map[string]string // by the names of settings
	noRecord  bool
	volumes   volumeOptions
	progress  progressOptions
}

func newRunCommand(d deps) *cobra.Command {
	o := runOptions{overrides: map[string]string{}}
	cmd := &cobra.Command{
		Use:   "run [OPTIONS] CONTAINER -- COMMAND [ARG...]",
		Short: "Run a command with snapshots of a container around it",
		Long: `Run a command on this machine, such as an agent that works in CONTAINER, with
snapshots of the container around it.

Its input, output, signals and exit status pass straight through. It sees
DOCKER_SNAPSHOT_CONTAINER and DOCKER_SNAPSHOT_RUN_ID, and docker snapshot create
within it takes both for its defaults. A snapshot that fails is a warning, and never
stops the command.

--interval says when snapshots are taken:
  manual           only when the command takes one
  run_start        before the command
  run_end          after it
  run_boundaries   before and after it
  every_action     before it, and after each docker exec in the container; while one
                   is being taken, and while commands follow each other closely, they
                   share the next one. Healthchecks are no actions

The snapshots of a run are numbered from 0: RUN#0 is the first, and RUN#-1 the last.
docker snapshot runs shows what is known of a run.`,
		Example: `  docker snapshot run web -- ./agent.py
  docker snapshot run --interval every_action --run-id 42 web -- ./agent.py
  docker snapshot run --restore-on-failure db -- ./migrate.sh`,
		Args:                  checkRunArguments,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeRun(d),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.engine.Timeout <= 0 {
				return usageError(cmd, errors.New("invalid --snapshot-timeout: it has to be longer than 0"))
			}
			if o.engine.RunID != "" {
				if err := session.CheckRunID(o.engine.RunID); err != nil {
					return usageError(cmd, err)
				}
			}
			return runRun(cmd.Context(), d, o, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// checkRunArguments wants a container, --, and a command.
func checkRunArguments(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); dash != 1 || len(args) < 2 { //nolint:mnd // a container and a word
		return errors.New("docker snapshot run wants a container, --, and a command.\n\nUsage:  " + cmd.UseLine())
	}
	return nil
}

func (o *runOptions) addFlags(flags *pflag.FlagSet) {
	flags.Var(o.override(retention.NameInterval, "string"), "interval", "Take snapshots at these moments: "+intervalChoices.words()+" (default run_boundaries)")
	flags.StringVar(&o.engine.RunID, "run-id", "", "Name the run; that of an earlier run continues it (default: a new one)")
	flags.BoolVar(&o.engine.RestoreOnFailure, "restore-on-failure", false, "If the command fails, restore the container in place to the start of the run")
	flags.Var(o.override(retention.NameMaxSnapshots, "int"), "max-snapshots", "Keep this many automatic snapshots of the container; 0: all")
	flags.Var(o.override(retention.NameRetentionDays, "int"), "retention-days", "Keep automatic snapshots for this many days; 0: for ever")
	flags.Var(o.override(retention.NameAutoCleanup, "string"), "auto-cleanup", "Remove automatic snapshots beyond the limits: 'true' or 'false'")
	flags.DurationVar(&o.engine.Timeout, "snapshot-timeout", runs.DefaultTimeout, "Give up a snapshot that takes longer, waiting for locks included")
	flags.BoolVar(&o.noRecord, "no-record-command", false, "Keep only the command's first word: all who may use the engine can read what is kept")
	o.volumes.addMakingFlags(flags)
	o.progress.addFlags(flags)
}

// override is an option for what a setting of that name is about. It comes after the container's labels.
func (o *runOptions) override(name, kind string) *option {
	return &option{kind: kind, set: func(word string) error {
		if err := new(retention.Policy).Set(name, word); err != nil {
			return err
		}
		o.overrides[name] = word
		return nil
	}}
}

// apply changes a policy as the options say.
func (o *runOptions) apply(p *retention.Policy) {
	for name, text := range o.overrides {
		_ = p.Set(name, text) // it was checked when the option was read
	}
}

func runRun(parent context.Context, d deps, o runOptions, args []string) error {
	if err := checkContainer(args[0]); err != nil {
		return withStatus(err)
	}
	show, err := newStage(d, o.progress)
	if err != nil {
		return withStatus(err)
	}
	defer show.close()
	o.engine.Command, o.engine.HideArguments = args[1:], o.noRecord
	if len(o.overrides) > 0 {
		o.engine.Override = o.apply
	}
	if o.engine.Policy, err = d.settings.policy(); err != nil {
		return withStatus(err)
	}
	eng, err := d.engine(o.volumes)
	if err != nil {
		return withStatus(err)
	}
	c := &child{now: d.clock.now, isTerminal: d.in.IsTerminal() || d.out.IsTerminal() || d.err.IsTerminal()}
	ctx, stop := c.watch(parent)
	defer stop()
	result, err := withService(ctx, d, eng, args[0], func(container string) (runs.Result, error) {
		o.engine.Container = container
		return eng.Run(ctx, o.engine, func(_ context.Context, s session.Session) (int, error) {
			show.close()
			status, err := c.run(args[1:], []string{variableContainer + "=" + s.Container, variableRunID + "=" + s.RunID, variableInterval + "=" + s.Interval})
			return status, errors.Join(err, show.open())
		}, d.advised(show.progress))
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.StatusError{Cause: err, Status: safeText(interruption(err)), StatusCode: c.interrupted()}
	case err != nil:
		return withStatus(err)
	case result.Status != 0:
		return &PassedStatus{Status: result.Status}
	}
	return nil
}

// runDefaults returns the container and the run that a run around this command has named.
func (d deps) runDefaults() (container, runID string) {
	container, _ = d.settings.environment(variableContainer)
	runID, _ = d.settings.environment(variableRunID)
	return container, runID
}

var intervalChoices = choicesOf(retention.Intervals()...)
