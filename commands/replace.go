package commands

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/cli/opts"
	"github.com/docker/go-units"
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
	addWaitingFlags(flags, &o.engine.Waiting)
}

// replaceOnly are the flags that mean nothing without --replace.
var replaceOnly = []string{"force", "yes", "no-safety", "stop-others", "volume", "timeout"}

// copyOnly are the flags that mean nothing with --replace.
var copyOnly = []string{"volumes", "binds"}

// checkTogether refuses flags of a restore in place for a copy, and the other way round.
func (o *restoreOptions) checkTogether(flags *pflag.FlagSet) error {
	if o.replace {
		for _, name := range copyOnly {
			if flags.Changed(name) {
				return fmt.Errorf("conflicting options: --replace and --%s", name)
			}
		}
		o.engine.Wait = o.engine.Wait || !flags.Changed("wait")
		return nil
	}
	for _, name := range replaceOnly {
		if flags.Changed(name) {
			return fmt.Errorf("--%s goes with --replace", name)
		}
	}
	return checkWaiting(flags, o.engine.Wait, o.noStart)
}

func runReplace(ctx context.Context, d deps, o restoreOptions) error {
	asked := !o.engine.DryRun && !o.force
	if asked {
		planned, err := o.askToReplace(ctx, d)
		if err != nil {
			return err
		}
		o.engine.Snapshot = string(planned.Snapshot.ID) // another may be the latest by now
	}
	var warned warningList
	replaced, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (replace.Result, error) {
		if asked {
			p = withoutNotes(p) // they were shown with the question
		}
		return withSnapshot(ctx, d, eng, o.engine.Snapshot, func(word string) (replace.Result, error) {
			o.engine.Snapshot = word
			return eng.Replace(ctx, o.engine, d.advised(warned.from(p)))
		})
	})
	if err != nil {
		return d.withRecovery(withGuard(err))
	}
	if replaced.Safety != nil {
		defer d.tidyAfter(ctx, replaced.Safety.Trigger)
	}
	return o.printReplaced(d, replaced, warned.list)
}

// printReplaced writes the container's ID, and on stderr how to take it back; or
// the plan of a dry run.
func (o *restoreOptions) printReplaced(d deps, replaced replace.Result, warnings []string) error {
	r := o.newReplaced(d, replaced, warnings)
	if !o.engine.DryRun {
		if r.Undo != "" {
			if err := writeLine(d.err, "To take it back: "+r.Undo); err != nil {
				return err
			}
		}
		return o.printDone(d, r)
	}
	if err := o.printPlan(d, r, replaced.Plan); err != nil || o.printer.formats() {
		return err
	}
	for _, line := range describeConfig(replaced.Config) {
		if err := writeLine(d.out, "change "+line); err != nil {
			return err
		}
	}
	for _, v := range replaced.Volumes {
		if err := writeLine(d.out, describeChange(v)); err != nil {
			return err
		}
	}
	return nil
}

// newReplaced describes a restore in place.
func (o *restoreOptions) newReplaced(d deps, replaced replace.Result, warnings []string) restoreResult {
	r := newRestored(d, replaced.Restored, warnings)
	r.VolumeChanges = convert(replaced.Volumes, newVolumeChange)
	r.ConfigChanges = convert(replaced.Config, func(c runconfig.ConfigChange) configChange { return configChange(c) })
	if replaced.Safety != nil {
		r.Safety = string(replaced.Safety.ID)
		r.Undo = o.undoCommand(d, replaced)
	}
	return r
}

func newVolumeChange(v replace.VolumeChange) volumeChange {
	return volumeChange{
		Volume: v.Volume, Made: v.Made, Kept: v.Kept != "", Reason: v.Kept,
		Added: newCount(v.Created), Changed: newCount(v.Changed), Deleted: newCount(v.Deleted),
	}
}

// undoCommand is the command that takes the restore back: on the same engine, and with
// the same power over other containers.
func (o *restoreOptions) undoCommand(d deps, replaced replace.Result) string {
	words := []string{"restore", "--replace"}
	if !d.in.IsTerminal() {
		words = append(words, "--force")
	}
	if o.engine.StopOthers {
		words = append(words, "--stop-others")
	}
	for _, volume := range o.engine.ReadOnly {
		words = append(words, "--volume", volume)
	}
	if replaced.Name != replaced.Safety.Container.Name {
		words = append(words, "--name", replaced.Name)
	}
	return d.commandLine(append(words, string(replaced.Safety.ID))...)
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

// describeChange is what --dry-run says of one volume.
func describeChange(v replace.VolumeChange) string {
	if v.Kept != "" {
		return fmt.Sprintf("volume %s: kept as it is (%s)", v.Volume, v.Kept)
	}
	parts := make([]string, 0, 3)
	for _, part := range []struct {
		verb string
		replace.Count
	}{{"create", v.Created}, {"change", v.Changed}, {"delete", v.Deleted}} {
		parts = append(parts, fmt.Sprintf("%s %d (%s)", part.verb, part.Entries, units.HumanSize(float64(part.Bytes))))
	}
	return fmt.Sprintf("volume %s: %s", v.Volume, strings.Join(parts, ", "))
}
