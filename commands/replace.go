package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/cli/opts"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// addReplaceFlags adds the flags of a restore in place.
func (o *restoreOptions) addReplaceFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.replace, "replace", false, "Put the container itself and its volumes back, instead of making a copy")
	flags.BoolVarP(&o.force, "force", "f", false, "Do not ask before replacing")
	flags.BoolVarP(&o.force, "yes", "y", false, "The same as --force")
	flags.BoolVar(&o.engine.NoSafety, "no-safety", false, "With --replace: take no snapshot first, so that a failure cannot put the volumes back")
	flags.BoolVar(&o.engine.StopOthers, "stop-others", false, "With --replace: stop other containers that hold the volumes, and start them again")
	flags.Var(opts.NewListOptsRef(&o.engine.ReadOnly, nil), "volume", "With --replace: restore this volume, too, although the container only reads it")
	flags.Var(parsed(&o.engine.StopTimeout, "int", parseStopTimeout), "timeout", "With --replace: seconds until a container that does not stop is killed (default: the container's own)")
	flags.BoolVar(&o.engine.Wait, "wait", false, "Wait until the container is healthy, has run for --settle, or has ended with 0; else put everything back, or remove the copy (default with --replace)")
	flags.BoolVar(&o.files, "files", false, "With --replace: show each file that changes; without it, --dry-run shows how many")
	flags.BoolVar(&o.group, "group", false, "With --replace: put back all containers that were captured together with this one")
	o.addOnlyFlags(flags)
	addWaitingFlags(flags, &o.engine.Waiting)
}

// replaceOnly are the flags that mean nothing without --replace.
var replaceOnly = []string{"force", "yes", "no-safety", "stop-others", "volume", "timeout", "files", "only", "path", "live", "group"}

// copyOnly are the flags that mean nothing with --replace.
var copyOnly = []string{"volumes", "binds", "labels"}

// checkTogether refuses flags of a restore in place for a copy, and the other way round.
func (o *restoreOptions) checkTogether(flags *pflag.FlagSet) error {
	if err := errors.Join(o.checkSeveral(flags), o.checkGroup(flags)); err != nil {
		return err
	}
	if o.engine.Lost && (o.engine.Volumes == runconfig.VolumesNone || o.engine.Volumes == runconfig.VolumesShared) {
		return fmt.Errorf("conflicting options: --lost and --volumes %s: the volumes are all that is left of it", o.engine.Volumes)
	}
	if o.replace {
		for _, name := range copyOnly {
			if flags.Changed(name) {
				return fmt.Errorf("conflicting options: --replace and --%s", name)
			}
		}
		o.engine.Wait = o.engine.Wait || !flags.Changed("wait")
		return o.checkOnly(flags)
	}
	for _, name := range replaceOnly {
		if flags.Changed(name) {
			return fmt.Errorf("--%s goes with --replace", name)
		}
	}
	return checkWaiting(flags, o.engine.Wait, o.noStart)
}

func runReplace(ctx context.Context, d deps, o restoreOptions) error {
	var warned warningList
	changed, noted, err := o.prepareReplace(ctx, d, &warned)
	if err != nil {
		return err
	}
	replaced, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (replace.Result, error) {
		during := p
		if noted {
			during = withoutNotes(p)
		}
		replaced, err := withReplaced(ctx, d, eng, o.engine, func(options replace.Options) (replace.Result, error) {
			return eng.Replace(ctx, options, d.advised(warned.from(during)))
		})
		if err == nil {
			d.noteReplaced(p, o.engine, replaced)
			d.noteGroup(ctx, eng, during, replaced)
		}
		return replaced, err
	})
	if err != nil {
		return d.withRecovery(withGuard(err))
	}
	if replaced.Safety != nil {
		defer d.tidyAfter(ctx, replaced.Safety.Trigger)
	}
	isPlanned := o.engine.DryRun && o.engine.Copy == "" // of a copy there is nothing yet that could be compared
	if changed == nil && (isPlanned || replaced.Safety != nil) {
		changed = compared(ctx, o.differences(replaced))
	}
	undo := d.undoCommand(replaced)
	if err := tellUndo(d, undo); err != nil {
		return err
	}
	return o.printReplaced(d, replaced, changed, undo, &warned)
}

// prepareReplace asks the user. If there will be no safety snapshot, it finds out what will change. It tells whether that
// has shown the notes of the restore.
func (o *restoreOptions) prepareReplace(ctx context.Context, d deps, warned *warningList) (changed changeSource, noted bool, err error) {
	compares := !o.engine.DryRun && o.engine.NoSafety && o.showsChanges()
	asks, err := o.asks(d)
	if err != nil {
		return nil, false, err
	}
	if !asks && !compares {
		return nil, false, nil
	}
	planned, err := o.planReplace(ctx, d)
	if err != nil {
		return nil, true, err
	}
	if asks {
		if err := d.confirm(ctx, describeReplace(planned, d.clock.now())); err != nil {
			return nil, true, err
		}
	}
	o.engine.Snapshot = string(planned.Snapshot.ID) // another may be the latest by now
	if compares {
		changed, err = o.changesBefore(ctx, d, planned, warned)
	}
	return changed, true, err
}

// asks tells whether the user is to be asked first. It fails if there is nobody to ask.
func (o *restoreOptions) asks(d deps) (bool, error) {
	if o.engine.DryRun || o.force {
		return false, nil
	}
	if !d.in.IsTerminal() {
		return false, wrongArgument{errors.New("replacing a container asks for confirmation; without a terminal, add --force")}
	}
	return true, nil
}

// tellUndo writes on stderr how to take a restore in place back.
func tellUndo(d deps, undo string) error {
	if undo == "" {
		return nil
	}
	return writeLine(d.err, "To take it back: "+undo)
}

// printReplaced writes the container's ID and, on stderr, what changed; or the plan of a dry run. The command undo takes it
// back.
func (o *restoreOptions) printReplaced(d deps, replaced replace.Result, changed changeSource, undo string, warned *warningList) error {
	var report *changeReport
	if o.printer.formats() && changed != nil && o.showsChanges() {
		report = o.changesOf(d, changed, nil, warned)
	}
	r := newReplaced(d, replaced, warned.list)
	r.Changes, r.Undo = report, undo
	if o.engine.DryRun {
		return o.printReplacePlan(d, r, replaced, changed, warned)
	}
	err := o.printDone(d, r)
	switch {
	case o.printer.formats():
	case o.files:
		o.printChanges(d, changed, d.err, warned)
	default:
		printCounts(d, replaced.Volumes)
	}
	return err
}

// printCounts writes how much a restore in place has changed in each volume, as the restore itself has counted it.
func printCounts(d deps, volumes []replace.VolumeChange) {
	for _, v := range volumes {
		if v.Kept == "" {
			_ = writeLine(d.err, v.Volume+": "+describeCounts(v))
		}
	}
}

func describeCounts(v replace.VolumeChange) string {
	switch {
	case v.Made:
		return "made again"
	case v.Created.Entries+v.Changed.Entries+v.Deleted.Entries == 0:
		return "no changes"
	default:
		return fmt.Sprintf("%d created, %d changed, %d deleted", v.Created.Entries, v.Changed.Entries, v.Deleted.Entries)
	}
}

// printChanges writes what a restore in place changed.
func (o *restoreOptions) printChanges(d deps, changed changeSource, out io.Writer, warned *warningList) {
	if changed == nil {
		_ = writeLine(out, "nothing to compare with: there was nothing to take a safety snapshot of")
		return
	}
	o.changesOf(d, changed, out, warned)
}

// printReplacePlan writes the plan of a dry run, and what it would change.
func (o *restoreOptions) printReplacePlan(d deps, r restoreResult, planned replace.Result, changed changeSource, warned *warningList) error {
	if err := o.printPlan(d, r, planned.Plan); err != nil || o.printer.formats() {
		return err
	}
	for _, line := range describeConfig(planned.Config) {
		if err := writeLine(d.out, "change "+line); err != nil {
			return err
		}
	}
	for _, v := range planned.Volumes {
		if v.Kept == "" {
			continue
		}
		if err := writeLine(d.out, fmt.Sprintf("volume %s: kept as it is (%s)", v.Volume, v.Kept)); err != nil {
			return err
		}
	}
	if o.engine.Copy == "" {
		o.printChanges(d, changed, d.out, warned)
	}
	return nil
}

// newReplaced describes a restore in place.
func newReplaced(d deps, replaced replace.Result, warnings []string) restoreResult {
	r := newRestored(d, replaced.Restored, warnings)
	r.ContainerKept = replaced.Keeps
	if r.Copy = replaced.Copy; r.Copy != "" {
		r.Status = statusPromoted
	}
	r.VolumeChanges = convert(replaced.Volumes, newVolumeChange)
	r.ConfigChanges = convert(replaced.Config, func(c runconfig.ConfigChange) configChange { return configChange(c) })
	if replaced.Safety != nil {
		r.Safety = string(replaced.Safety.ID)
	}
	return r
}

func newVolumeChange(v replace.VolumeChange) volumeChange {
	return volumeChange{Volume: v.Volume, Made: v.Made, Kept: v.Kept != "", Reason: v.Kept}
}

// undoCommand is the command that takes restores back, on the same engine. It is empty if none has a safety snapshot. One is
// enough for those that were done together.
func (d deps) undoCommand(all ...replace.Result) string {
	for _, r := range all {
		if r.Safety != nil {
			return d.commandLine("undo", r.Name)
		}
	}
	return ""
}

// commandLine is a command of this program as people type it, with the global options that
// lead to the same engine.
func (d deps) commandLine(words ...string) string {
	all := slices.Concat([]string{"docker"}, d.global, []string{Name}, words)
	for i, word := range all {
		all[i] = shellWord(word)
	}
	return strings.Join(all, " ")
}

// plainWord matches a word that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
