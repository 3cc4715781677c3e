package commands

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docker/cli/opts"
	"github.com/docker/go-units"
	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

// replaceOptions are those of restore --replace.
type replaceOptions struct {
	replace       bool
	force         bool
	noSafety      bool
	stopOthers    bool
	readOnly      []string
	stopTimeout   int
	wait          bool
	settle        time.Duration
	healthTimeout time.Duration
}

// stopTimeoutUnset leaves the time to stop to the container's own setting.
const stopTimeoutUnset = -1

func (o *replaceOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.replace, "replace", false, "Put the container itself and its volumes back, instead of making a copy")
	flags.BoolVarP(&o.force, "force", "f", false, "Do not ask before replacing")
	flags.BoolVarP(&o.force, "yes", "y", false, "The same as --force")
	flags.BoolVar(&o.noSafety, "no-safety", false, "With --replace: take no snapshot first, so that a failure cannot put the volumes back")
	flags.BoolVar(&o.stopOthers, "stop-others", false, "With --replace: stop other containers that hold the volumes, and start them again")
	flags.Var(opts.NewListOptsRef(&o.readOnly, nil), "volume", "With --replace: restore this volume, too, although the container only reads it")
	flags.IntVar(&o.stopTimeout, "timeout", stopTimeoutUnset, "With --replace: seconds until a container that does not stop is killed (default: the container's own)")
	flags.Lookup("timeout").DefValue = "0" // the help text says what it is
	flags.BoolVar(&o.wait, "wait", true, "With --replace: wait until the container is healthy, has run for --settle, or has ended with 0; else put everything back")
	flags.DurationVar(&o.settle, "settle", snapshot.DefaultSettle, "With --replace: how long a container without healthcheck has to run")
	flags.DurationVar(&o.healthTimeout, "health-timeout", 0, "With --replace: how long it may take to become healthy (default: as long as its healthcheck needs, at least "+snapshot.DefaultHealthTimeout.String()+")")
}

// replaceOnly are the flags that mean nothing without --replace.
var replaceOnly = []string{"force", "yes", "no-safety", "stop-others", "volume", "timeout", "wait", "settle", "health-timeout"}

// copyOnly are the flags that mean nothing with --replace.
var copyOnly = []string{"volumes", "binds"}

// parse checks that the options go together.
func (o *replaceOptions) parse(flags *pflag.FlagSet) error {
	if o.replace {
		for _, name := range copyOnly {
			if flags.Changed(name) {
				return fmt.Errorf("conflicting options: --replace and --%s", name)
			}
		}
		return nil
	}
	for _, name := range replaceOnly {
		if flags.Changed(name) {
			return fmt.Errorf("--%s goes with --replace", name)
		}
	}
	return nil
}

func (o *replaceOptions) engineOptions(r snapshot.RestoreOptions) snapshot.ReplaceOptions {
	options := snapshot.ReplaceOptions{
		RestoreOptions: r, NoSafety: o.noSafety, StopOthers: o.stopOthers, ReadOnly: o.readOnly,
		Wait: o.wait, Settle: o.settle, HealthTimeout: o.healthTimeout,
	}
	if o.stopTimeout != stopTimeoutUnset {
		options.StopTimeout = &o.stopTimeout
	}
	return options
}

func runReplace(ctx context.Context, d deps, o restoreOptions) error {
	asked := !o.engine.DryRun && !o.replace.force
	if asked {
		planned, err := o.askToReplace(ctx, d)
		if err != nil {
			return err
		}
		o.engine.Snapshot = string(planned.Snapshot.ID) // another may be the latest by now
	}
	var warned warningList
	replaced, err := call(d, o.progress, func(eng engine, p snapshot.Progress) (snapshot.Replaced, error) {
		if asked {
			p = withoutNotes(p) // they were shown with the question
		}
		return withSnapshot(ctx, d, eng, o.engine.Snapshot, func(word string) (snapshot.Replaced, error) {
			o.engine.Snapshot = word
			return eng.Replace(ctx, o.replace.engineOptions(o.engine), warned.from(p))
		})
	})
	if err != nil {
		if unfinished(err) != "" {
			err = errors.Join(err, fmt.Errorf("this is tried again in the background for %.0f minutes", guardPatience.Minutes()))
		}
		return d.withRecovery(err)
	}
	return o.printReplaced(d, replaced, warned.list)
}

// printReplaced writes the container's ID, and on stderr how to take it back; or
// the plan of a dry run.
func (o *restoreOptions) printReplaced(d deps, replaced snapshot.Replaced, warnings []string) error {
	r := newRestored(d, replaced.Restored, warnings)
	r.VolumeChanges = convert(replaced.Volumes, newVolumeChange)
	r.ConfigChanges = convert(replaced.Config, func(c snapshot.ConfigChange) configChange { return configChange(c) })
	if replaced.Safety != nil {
		r.Safety = string(replaced.Safety.ID)
		r.Undo = o.undoCommand(d, replaced)
	}
	if !o.engine.DryRun {
		if r.Undo != "" {
			if err := writeLine(d.err, "To take it back: "+r.Undo); err != nil {
				return err
			}
		}
		return o.printDone(d, r)
	}
	if err := o.printPlan(d, r, replaced.Plan); err != nil || o.printer.format != "" {
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

func newVolumeChange(v snapshot.VolumeChange) volumeChange {
	return volumeChange{
		Volume: v.Volume, Made: v.Made, Kept: v.Kept != "", Reason: v.Kept,
		Added: newCount(v.Created), Changed: newCount(v.Changed), Deleted: newCount(v.Deleted),
	}
}

// undoCommand is what has to be typed to take the restore back: in the same place,
// with the same power over other containers.
func (o *restoreOptions) undoCommand(d deps, replaced snapshot.Replaced) string {
	words := []string{"restore", "--replace"}
	if !d.in.IsTerminal() {
		words = append(words, "--force")
	}
	if o.replace.stopOthers {
		words = append(words, "--stop-others")
	}
	for _, volume := range o.replace.readOnly {
		words = append(words, "--volume", volume)
	}
	if replaced.Name != replaced.Safety.Container.Name {
		words = append(words, "--name", replaced.Name)
	}
	return d.commandLine(append(words, string(replaced.Safety.ID))...)
}

// commandLine is a command of this program as people type it, for the engine that
// this one was for.
func (d deps) commandLine(words ...string) string {
	all := slices.Concat([]string{"docker"}, d.global, []string{Name}, words)
	for i, word := range all {
		all[i] = shellWord(word)
	}
	return strings.Join(all, " ")
}

// plainWord is what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// withRecovery adds to an error what to type when the state that it speaks of is
// not the one that should be.
func (d deps) withRecovery(err error) error {
	container := unfinished(err)
	if container == "" {
		return err
	}
	return errors.Join(err, errors.New("When the cause is removed, type: "+d.commandLine("recover", container)))
}

// unfinished is the container whose restore in place has left something to do, or
// nothing.
func unfinished(err error) string {
	if stuck, ok := errors.AsType[*snapshot.UndoError](err); ok {
		return stuck.Container
	}
	if stopped, ok := errors.AsType[*snapshot.NotStartedError](err); ok {
		return stopped.Container
	}
	return ""
}

// describeChange is what --dry-run says of one volume.
func describeChange(v snapshot.VolumeChange) string {
	if v.Kept != "" {
		return fmt.Sprintf("volume %s: kept as it is (%s)", v.Volume, v.Kept)
	}
	parts := make([]string, 0, 3)
	for _, part := range []struct {
		verb string
		snapshot.Count
	}{{"create", v.Created}, {"change", v.Changed}, {"delete", v.Deleted}} {
		parts = append(parts, fmt.Sprintf("%s %d (%s)", part.verb, part.Entries, units.HumanSize(float64(part.Bytes))))
	}
	return fmt.Sprintf("volume %s: %s", v.Volume, strings.Join(parts, ", "))
}
