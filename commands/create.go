package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type createOptions struct {
	engine   capture.Options
	with     []string // further containers, of which one is taken at the same moment
	attach   attachOptions
	state    stateOptions
	usage    usageOptions
	changes  changesOptions
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

// createLong is what the help says.
const createLong = `Take a snapshot of a container and print its ID.

The container may be running, paused or stopped, and stays so. NAME is 1 to 128
letters, digits, '_', '.' and '-', and is unique among the snapshots of the
container. CONTAINER may be a service of the Compose project in the current
directory, if the service has one container. Within docker snapshot run, CONTAINER and
--run-id are those of the run unless others are given.

The content of a bind mount belongs to the host: the snapshot has only its path. A
line says so for each bind mount, unless -q is given or the container has the label
cua.snapshot.policy.binds=known. With --include-bind, or a path in the label
cua.snapshot.policy.include-bind, the content of a directory is captured as that of a
volume is. A restore in place writes it back, and a copy gets it as a new volume. What
.gitignore files in it say is left out, unless --use-gitignore=false is given. So that
nobody captures a disk by mistake, --max-entries and --max-bytes are in force for it.

--exclude and --exclude-glob leave out a part of the volumes: a directory that is
excluded is not read. --exclude names it: node_modules is anything of that name,
src/build a path that ends so, /data a path from the root of the volume, and tmp/ only
directories. --force-include takes the same words, and beats the others. The label
cua.snapshot.policy.exclude of the container has words for both options, with commas
between them. A restore in place leaves alone what was excluded. The root filesystem is
always captured whole: exclusions cannot apply to it.

--changes says what changed since the parent, the snapshot before it: on stderr how much,
with --files each file, and in --format json both. It is found out when the snapshot is
there and the container runs again. See 'docker snapshot diff'.

Files of volumes whose size and times are those of the last snapshot are not read.
--check-fraction 0.1 reads a random tenth of them, to find out whether the store and the
disk are what they were; every tenth automatic snapshot of a volume does that by itself
(setting check-fraction). --full reads all of them, and what is in the store already is
read there, too, before the snapshot relies on it. A file that is not what was recorded is
named, its volume is read whole, and the exit status is 3.

Commands may run in the container before and after it is frozen: see --pre-exec,
or the labels cua.snapshot.policy.pre and .post of the container.

--with takes a snapshot of another container, too, at the same moment: nothing is written
to any of their volumes between one and the next. All are taken or none, under the same
NAME, and they are one --group: that of the first one's ID, unless it is named. The IDs
are printed in the order of the containers. Every option is for each of them: hooks that
differ belong in the labels of the containers. 'docker snapshot restore --replace' puts
several back together.

--attach stores files of yours with the snapshot, such as the state of an agent. What
has a name that ends in .json has to be JSON. 'docker snapshot cat' writes one out.

--state-only takes a state: a light snapshot of what is attached, without a container
or files of one. It is the next one of its --line, which references mean as they mean
a container, and the only argument is its NAME. Of automatic states, with another
trigger than manual, the line keeps the last ones: see --keep.

--if-usage is for hosts that call create after every step, with the part of something
that is used, such as the context of a model. A snapshot is taken when usage has
reached a --threshold that the last such snapshot, of the run if one is named, had
not reached, or once more after it had fallen below that. Otherwise nothing is taken,
and the exit status is 0. The trigger is threshold.`

func newCreateCommand(d deps) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create [OPTIONS] [CONTAINER] [NAME]",
		Short: "Take a snapshot of a container",
		Long:  createLong,
		Example: `  docker snapshot create web
  docker snapshot create web before-upgrade -m "before the upgrade to 2.0"
  docker snapshot create --trigger before_action --run-id 42 --expires 2w web
  docker snapshot create --include-bind /work agent
  docker snapshot create --exclude node_modules --exclude-glob '*.log' dev
  docker snapshot create --changes --files web
  docker snapshot create --with db --with cache web before-upgrade
  docker snapshot create --full db
  docker snapshot create --pre-exec 'redis-cli save' cache
  docker snapshot create --attach chat.json=chat.json --attach log=/tmp/agent.log web
  docker snapshot create --state-only --line chat --attach chat.json=chat.json
  docker snapshot create --if-usage 0.91 --threshold 0.85 --threshold 0.95 web`,
		Args:                  func(cmd *cobra.Command, args []string) error { return o.checkArgs(d, cmd, args) },
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     completeContainers(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			args = o.withinRun(d, args)
			if err := o.parse(cmd.Flags(), args); err != nil {
				return usageError(cmd, err)
			}
			attachments, discard, err := o.attach.open(d.in)
			if err != nil {
				return usageError(cmd, err)
			}
			defer discard()
			o.engine.Attachments = attachments
			return runCreate(ctx, d, o, args)
		}),
	}
	o.addFlags(cmd.Flags(), d.clock)
	return cmd
}

// checkArgs refuses a wrong number of arguments.
func (o *createOptions) checkArgs(d deps, cmd *cobra.Command, args []string) error {
	if o.state.only {
		return cli.RequiresMaxArgs(1)(cmd, args)
	}
	if container, _ := d.runDefaults(); container != "" && len(args) == 0 {
		return nil
	}
	return cli.RequiresRangeArgs(1, 2)(cmd, args) //nolint:mnd // the container, and a name
}

func (o *createOptions) addFlags(flags *pflag.FlagSet, clock clock) {
	flags.StringVarP(&o.engine.Description, "message", "m", "", "Describe the snapshot")
	flags.Var(opts.NewListOptsRef(&o.engine.Tags, checkTag), "tag", "Add a tag, to filter by")
	flags.Var(keyed(&o.engine.Meta, parseMeta), "meta", "Add a key=value pair of your own")
	flags.Var(checked(&o.engine.Trigger, choicesOf(labels.Triggers()...).check), "trigger", "Say why it is taken (default manual)")
	flags.StringVar(&o.engine.RunID, "run-id", "", "Name the run that it belongs to")
	flags.StringVar(&o.engine.IdempotencyKey, "idempotency-key", "", "Take one snapshot for this key, however often it is asked for")
	flags.StringVar(&o.engine.StepID, "step-id", "", "Name the step of the run (default: the number of the snapshot in the run)")
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
	o.addTogetherFlags(flags)
	o.addBindFlags(flags)
	o.addExcludeFlags(flags)
	o.addHookFlags(flags)
	o.addStateFlags(flags)
	o.addUsageFlags(flags)
	o.addChangesFlags(flags)
	flags.BoolVar(&o.engine.Full, "full", false, "Read and hash all volumes, whatever the store says of files that seem to be unchanged")
	flags.Var(parsed(&o.engine.CheckFraction, "part", parseFraction), "check-fraction", "Compare this part of the files that seem to be unchanged with the store, from 0 to 1")
	flags.Var(repeated(o.attach.add), "attach", "Store a file with the snapshot: NAME=FILE; FILE may be - for stdin")
	o.volumes.addMakingFlags(flags)
	o.printer.addFlag(flags, createResult{}, skippedResult{})
	o.progress.addFlags(flags)
}

func (o *createOptions) addExcludeFlags(flags *pflag.FlagSet) {
	e := &o.engine.Exclude
	flags.Var(opts.NewListOptsRef(&e.Patterns, checkWord(labels.CheckExclude)), "exclude", "Leave out what has this name in a volume, or this path, as in src/build")
	flags.Var(opts.NewListOptsRef(&e.Globs, checkWord(labels.CheckExcludeGlob)), "exclude-glob", "Leave out what has such a name in a volume, as *.log")
	flags.Var(opts.NewListOptsRef(&e.Included, checkWord(labels.CheckExclude)), "force-include", "Capture what has this name or path, whatever else is said")
	flags.BoolVar(&e.Gitignore, "use-gitignore", false, "Leave out what .gitignore files say (default in bind mounts: true)")
}

// checkWord is a validator of an option that takes a word as it is.
func checkWord(check func(word string) error) opts.ValidatorFctType {
	return func(word string) (string, error) { return word, check(word) }
}

func (o *createOptions) addHookFlags(flags *pflag.FlagSet) {
	flags.Var(parsed(&o.engine.Hooks.Pre, "command", parseHook), "pre-exec", "Run this in the container before it is frozen; '' for no hook")
	flags.Var(parsed(&o.engine.Hooks.Post, "command", parseHook), "post-exec", "Run this in the container once it is thawed, whatever happens; '' for no hook")
	flags.Var(parsed(&o.engine.Hooks.Timeout, "duration", parseHookTimeout), "hook-timeout", "End a hook that takes longer (default 30s)")
	flags.Var(checked(&o.engine.Hooks.OnError, hookErrors.check), "hook-on-error", "Take no snapshot if the first hook fails ('fail'), or 'continue' (default fail)")
}

// withinRun adds what the run around this command has named, and the user has not.
func (o *createOptions) withinRun(d deps, args []string) []string {
	container, runID := d.runDefaults()
	if o.engine.RunID == "" && len(o.with) == 0 { // a run is of one container
		o.engine.RunID = runID
	}
	switch {
	case o.state.only: // the only argument is the name
		return append([]string{""}, args...)
	case len(args) == 0:
		return []string{container}
	}
	return args
}

// parse takes the arguments, and checks what the options say together.
func (o *createOptions) parse(flags *pflag.FlagSet, args []string) error {
	if err := o.state.check(flags, o.engine.Line); err != nil {
		return err
	}
	if err := o.usage.into(flags, &o.engine); err != nil {
		return err
	}
	if err := o.changes.check(o.state.only); err != nil {
		return err
	}
	if err := o.checkTogether(flags); err != nil {
		return err
	}
	o.engine.Container = args[0]
	if len(args) > 1 {
		o.engine.Name = args[1]
	}
	o.engine.Exclude.NoGitignore = flags.Changed("use-gitignore") && !o.engine.Exclude.Gitignore
	if o.engine.NoPause && o.engine.Pause != "" && o.engine.Pause != capture.PauseNone {
		return fmt.Errorf("conflicting options: --no-pause and --pause=%s", o.engine.Pause)
	}
	if o.engine.Full && o.engine.CheckFraction != nil {
		return errors.New("conflicting options: --full and --check-fraction")
	}
	if o.engine.Volumes.None && len(o.engine.Volumes.Only) > 0 {
		return errors.New("conflicting options: --no-volumes and --volume")
	}
	return nil
}

func runCreate(ctx context.Context, d deps, o createOptions, args []string) error {
	if !o.state.only {
		if err := checkContainer(o.engine.Container); err != nil {
			return err
		}
	}
	if len(args) > 1 {
		if err := labels.CheckName(args[1]); err != nil {
			return wrongArgument{err}
		}
	}
	var warned warningList
	all, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]capture.Created, error) {
		all, err := o.take(ctx, d, eng, warned.from(p))
		for i, s := range all {
			switch {
			case s.Skipped != "":
				p.Note("usage", "no snapshot was taken: "+s.Skipped)
			case s.Layers == nil && o.printer.formats(): // in a run they are known
				all[i].Layers = layersOf(ctx, eng, s.Snapshot)
			}
		}
		return all, err
	})
	if err != nil {
		return err
	}
	if all[0].Skipped != "" {
		return o.printSkipped(d, all[0].Skipped)
	}
	for _, s := range all {
		if err := o.printCreated(ctx, d, s, &warned); err != nil {
			return err
		}
	}
	o.tidyLine(ctx, d, all[0].Snapshot)
	d.tidyAfter(ctx, all[0].Trigger)
	if slices.ContainsFunc(all, func(s capture.Created) bool { return s.SweepDue }) { // only now that the result is out, for nobody waits for that
		_, _ = call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (struct{}, error) {
			eng.Sweep(ctx, d.advised(p))
			return struct{}{}, nil
		})
	}
	return errors.Join(convert(all, shortcoming)...)
}

// shortcoming is what a snapshot lacks that was taken.
func shortcoming(s capture.Created) error {
	switch {
	case s.Contradicted:
		return &contradictedError{s.ID}
	case s.Incomplete:
		return fmt.Errorf("snapshot %s is %w: see the warnings", s.Title(), errIncomplete)
	}
	return nil
}

// contradictedError means that a new snapshot shows damage in earlier ones. Its exit status is that of something
// incomplete.
type contradictedError struct{ id labels.ID }

func (e *contradictedError) Error() string {
	return fmt.Sprintf("snapshot %s holds what is in the volumes, but earlier ones may be damaged: see the warnings", e.id)
}

// Is makes it an incomplete result.
func (*contradictedError) Is(target error) bool { return target == errIncomplete }

// printCreated writes the ID of a new snapshot, and then what changed since its parent; or both as one result.
func (o *createOptions) printCreated(ctx context.Context, d deps, s capture.Created, warned *warningList) error {
	if !o.printer.formats() {
		if err := o.printer.print(d.out, string(s.ID), nil); err != nil {
			return err
		}
		o.compare(ctx, d, s.Snapshot, warned)
		return nil
	}
	changed := o.compare(ctx, d, s.Snapshot, warned)
	r := newCreateResult(s, warned.list)
	r.Changes = changed
	return o.printer.print(d.out, "", r)
}

// layersOf asks for the layers of a new snapshot, which the engine works out while it commits. Its root
// depends on them, and only who asks for a format is told that.
func layersOf(ctx context.Context, eng engine, made catalog.Snapshot) []string {
	found, err := eng.Resolve(ctx, made.Container.Name+":"+string(made.ID))
	if err != nil {
		return nil // the snapshot is made, and what else is known of it is printed
	}
	return found.Layers
}
