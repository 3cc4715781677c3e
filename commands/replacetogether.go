package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// ofOneContainer are the options of restore that are about a single container.
var ofOneContainer = []string{
	"name", "publish", "publish-all", "env", "label", "network", "memory", "cpus", "attachments", "lost", "volume", "only", "path", "live", "files",
}

// checkSeveral refuses options that do not go with several snapshots.
func (o *restoreOptions) checkSeveral(flags *pflag.FlagSet) error {
	if len(o.others) == 0 {
		return nil
	}
	if !o.replace {
		return errors.New("several snapshots go back together only with --replace; fork makes several copies of one")
	}
	for _, name := range ofOneContainer {
		if flags.Changed(name) {
			return fmt.Errorf("--%s is for one snapshot, and %d are named", name, 1+len(o.others))
		}
	}
	return nil
}

// runReplaceTogether puts several containers back: all of them, or none.
func runReplaceTogether(ctx context.Context, d deps, o restoreOptions) error {
	asks, err := o.asks(d)
	if err != nil {
		return err
	}
	if asks {
		if err := o.askTogether(ctx, d); err != nil {
			return err
		}
	}
	var warned warningList
	all, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]replace.Result, error) {
		during := p
		if asks {
			during = withoutNotes(p) // the plan has told them
		}
		all, err := o.replaceTogether(ctx, d, eng, d.advised(warned.from(during)))
		if err == nil {
			d.noteReplaced(p, o.engine, all...)
			d.noteGroup(ctx, eng, during, all...)
		}
		return all, err
	})
	if err != nil {
		return d.withRecovery(withGuard(err))
	}
	for _, r := range all {
		if r.Safety != nil {
			defer d.tidyAfter(ctx, r.Safety.Trigger)
			break
		}
	}
	return o.printTogether(ctx, d, all, &warned)
}

// printTogether writes what became of each container, and how to take it back.
func (o *restoreOptions) printTogether(ctx context.Context, d deps, all []replace.Result, warned *warningList) error {
	undo := d.undoCommand(all...)
	if err := tellUndo(d, undo); err != nil {
		return err
	}
	return o.printEach(ctx, d, all, undo, warned)
}

// printEach writes what became of each container. The command undo takes it back.
func (o *restoreOptions) printEach(ctx context.Context, d deps, all []replace.Result, undo string, warned *warningList) error {
	var failures []error
	for _, r := range all {
		if o.engine.DryRun && !o.printer.formats() { // what a plan says of a root filesystem does not name the container
			failures = append(failures, writeLine(d.out, "container "+r.Name+":"))
		}
		failures = append(failures, o.printReplaced(d, r, o.changesTogether(ctx, r), undo, warned))
	}
	return errors.Join(failures...)
}

// changesTogether compares one of the containers with what it was, if that is to be shown.
func (o *restoreOptions) changesTogether(ctx context.Context, r replace.Result) changeSource {
	if o.engine.DryRun || r.Safety != nil {
		return compared(ctx, o.differences(r))
	}
	return nil
}

// askTogether asks the user whether to go on, and keeps to the snapshots that it has told of: others may be the latest later.
func (o *restoreOptions) askTogether(ctx context.Context, d deps) error {
	options := *o
	options.engine.DryRun = true
	planned, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) ([]replace.Result, error) {
		planned, err := planSettled(ctx, eng, p, func() ([]replace.Result, error) { return options.replaceTogether(ctx, d, eng, p) })
		if err == nil {
			d.noteGroup(ctx, eng, p, planned...)
		}
		return planned, err
	})
	if err != nil {
		return d.withRecovery(err)
	}
	now := d.clock.now()
	texts := convert(planned, func(r replace.Result) string { return describeReplace(r, now) })
	if err := d.confirm(ctx, strings.Join(texts, "\n")); err != nil {
		return err
	}
	ids := convert(planned, func(r replace.Result) string { return string(r.Snapshot.ID) })
	o.engine.Snapshot, o.others = ids[0], ids[1:]
	return nil
}

// replaceTogether hands the snapshots to the engine. A word may name a container by its service of Compose.
func (o *restoreOptions) replaceTogether(ctx context.Context, d deps, eng engine, p plan.Progress) ([]replace.Result, error) {
	words := slices.Concat([]string{o.engine.Snapshot}, o.others)
	return withSnapshots(ctx, d, eng, words, func(words []string) ([]replace.Result, error) {
		return eng.ReplaceTogether(ctx, convert(words, func(word string) replace.Options {
			one := o.engine
			one.Snapshot = word
			return one
		}), p)
	})
}
