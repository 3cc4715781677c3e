package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

type restoreOptions struct {
	engine  replace.Options // a copy only needs the RestoreOptions in it
	others  []string        // further snapshots, which go back in place together with the first
	replace bool
	force   bool // without it, a restore in place asks
	group   bool // put back all containers that were captured together
	files   bool // show each file that a restore in place changes
	starting
	volumes  volumeOptions
	progress progressOptions
	printer  printer
}

// restoreLong is what the help says.
const restoreLong = `Bring a snapshot back as a new container, and print the container's ID.

The container that the snapshot was taken of is not touched. The new one has its
whole configuration, except for what only one of the two can have: addresses,
network aliases, a hostname that other containers find it by, captured host
ports that are taken. It is started if the original was running. Bind mounts
belong to the host: their content is not in the snapshot, and the new container
may only read it, unless --binds says otherwise. With --wait the command ends when
the new container is healthy or, without a healthcheck, has run for --settle. One
that does not come up is removed, and the error has the last lines of its log.

With --replace the container itself becomes what it was, and so do its volumes.
Everything is checked before anything is touched, and a snapshot is taken first.
If anything fails, the same container runs again with the data that it had.
--dry-run shows how much would change in the root filesystem and the volumes, and with
--files each file, as docker snapshot diff does. Without --dry-run, --files shows each
file that was changed, on stderr, once the container runs; --format json has them all.
With --only some volumes alone, or the root filesystem alone, go back; volumes alone
keep the container, which is only stopped meanwhile. With --live it is only frozen:
for programs that bear it that their files change.

With --replace there may be several snapshots, each of another container: those that
create --with has taken at one moment, for example. All containers go back, or all run
again as they were, also if one needs the network of another, or shares a volume with it.
--group finds the other snapshots of the same moment by one of them.

With --lost it brings back a snapshot whose image somebody else has removed, as
docker system prune -a does; docker snapshot ls --lost lists those. Only the volumes
are left of it: they come into a new container of the image that the captured one
ran from or, with --replace, into the container that is there.

SNAPSHOT is a container, for its latest snapshot; container:name; container@5m or
container@2026-03-14T09:26, for the newest that is at least that old; an ID, the
beginning of one, or a name that only one snapshot has. The container may be named
by its service in the Compose project of the current directory.`

func newRestoreCommand(d deps) *cobra.Command {
	var o restoreOptions
	cmd := &cobra.Command{
		Use:   "restore [OPTIONS] SNAPSHOT [SNAPSHOT...]",
		Short: "Bring a snapshot back, as a new container or in place",
		Long:  restoreLong,
		Example: `  docker snapshot restore web:before-upgrade
  docker snapshot restore --name web-copy -p 8081:80 web:latest
  docker snapshot restore --wait web:before-upgrade
  docker snapshot restore --dry-run 20260314-092653
  docker snapshot restore --replace --dry-run --files web:before-upgrade
  docker snapshot restore --replace web:before-upgrade
  docker snapshot restore --replace db@5m
  docker snapshot restore --replace --only /var/lib/postgresql/data db@5m
  docker snapshot restore --replace web:before-upgrade db:before-upgrade
  docker snapshot restore --replace --group web:before-upgrade
  docker snapshot restore --lost --replace 20260314-092653-58979a`,
		Args:                  cli.RequiresMinArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     o.complete(d),
		RunE: adapt(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.parse(args), o.checkTogether(cmd.Flags())); err != nil {
				return usageError(cmd, err)
			}
			return runRestore(ctx, d, o)
		}),
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *restoreOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.engine.Name, "name", "", "Name the new container (default: that of the original and 6 hex digits)")
	flags.VarP(repeated(func(spec string) error { return addPort(&o.engine.Publish, spec) }), "publish", "p", "Publish a port as docker run does, instead of as captured")
	addCopyFlags(flags, &o.engine.RestoreOptions, &o.starting)
	flags.BoolVar(&o.engine.Lost, "lost", false, "Bring back the volumes of a snapshot that has lost its image, see docker snapshot ls --lost")
	flags.BoolVar(&o.engine.DryRun, "dry-run", false, "Show what would be done, and do nothing")
	flags.StringVar(&o.engine.Attachments, "attachments", "", "Write its attachments to this directory, which must be empty or not there")
	o.addReplaceFlags(flags)
	o.volumes.addFindingFlags(flags)
	o.printer.addFlag(flags, restoreResult{})
	o.progress.addFlags(flags)
}

var bindChoices = choicesOf(runconfig.BindsReadOnly, runconfig.BindsShared, runconfig.BindsNone)

var labelChoices = choicesOf(runconfig.LabelsHarmless, runconfig.LabelsAll)

var volumeChoices = choicesOf(runconfig.VolumesNew, runconfig.VolumesShared, runconfig.VolumesNone)

// complete completes snapshots: several only if they go back in place.
func (o *restoreOptions) complete(d deps) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		limit := 1
		if o.replace {
			limit = 0
		}
		return completeSnapshots(d, limit)(cmd, args, word)
	}
}

// parse takes the arguments, and checks what the options say together.
func (o *restoreOptions) parse(args []string) error {
	o.engine.Snapshot, o.others = args[0], args[1:]
	return o.apply(&o.engine.RestoreOptions)
}

func runRestore(ctx context.Context, d deps, o restoreOptions) error {
	for _, word := range slices.Concat([]string{o.engine.Snapshot}, o.others) {
		if err := checkSnapshot(word); err != nil {
			return err
		}
	}
	if o.group {
		if err := o.addGroup(ctx, d); err != nil {
			return err
		}
	}
	switch {
	case len(o.others) > 0:
		return runReplaceTogether(ctx, d, o)
	case o.replace:
		return runReplace(ctx, d, o)
	}
	var warned warningList
	restored, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (build.Restored, error) {
		restored, err := withSnapshot(ctx, d, eng, o.engine.Snapshot, func(word string) (build.Restored, error) {
			o.engine.Snapshot = word
			return eng.Restore(ctx, o.engine.RestoreOptions, d.advised(warned.from(p)))
		})
		if err == nil && !o.engine.DryRun {
			d.noteCopies(p, restored)
		}
		return restored, err
	})
	if err != nil {
		return err
	}
	return o.print(d, restored, warned.list)
}

// print writes the new container's ID, or the plan of a dry run.
func (o *restoreOptions) print(d deps, restored build.Restored, warnings []string) error {
	r := newRestored(d, restored, warnings)
	if !o.engine.DryRun {
		return o.printDone(d, r)
	}
	return o.printPlan(d, r, restored.Plan)
}

// printDone writes what was made, and fails if something is missing in it.
func (o *restoreOptions) printDone(d deps, r restoreResult) error {
	if err := o.printer.print(d.out, r.RestoredContainerID, r); err != nil {
		return err
	}
	if r.Incomplete {
		return fmt.Errorf("container %s is %w: see the warnings", r.RestoredContainer, errIncomplete)
	}
	return nil
}

func newRestored(d deps, restored build.Restored, warnings []string) restoreResult {
	return restoreResult{
		outcome:             newOutcome(restored.Snapshot, statusRestored, d.clock.now()),
		Incomplete:          restored.Incomplete,
		RestoredContainer:   restored.Name,
		RestoredContainerID: restored.ContainerID,
		Started:             restored.Started,
		Plan:                convert(restored.Plan, newPlanStep),
		VolumeChanges:       []volumeChange{},
		ConfigChanges:       []configChange{},
		TimingsMS:           millis(restored.Timings),
		Warnings:            newWords(warnings),
	}
}

func newPlanStep(s plan.Step) planStep {
	return planStep{Op: string(s.Op), Target: s.Target, Reason: s.Reason}
}

// printPlan writes the plan that a dry run has made.
func (o *restoreOptions) printPlan(d deps, r restoreResult, steps plan.Plan) error {
	r.Status = statusPlanned
	if o.printer.formats() {
		return o.printer.print(d.out, "", r)
	}
	for _, step := range steps {
		if err := writeLine(d.out, step.String()); err != nil {
			return err
		}
	}
	return nil
}

func millis(timings plan.Timings) map[string]int64 {
	phases := make(map[string]int64, len(timings))
	for _, t := range timings {
		phases[t.Phase] = t.Duration.Round(time.Millisecond).Milliseconds()
	}
	return phases
}
