package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// planReplace finds out what a restore in place would do.
func (o *restoreOptions) planReplace(ctx context.Context, d deps) (replace.Result, error) {
	options := o.engine
	options.DryRun = true
	planned, err := call(d, o.volumes, o.progress, func(eng engine, p plan.Progress) (replace.Result, error) {
		planned, err := withReplaced(ctx, d, eng, options, func(options replace.Options) (replace.Result, error) {
			return planSettled(ctx, eng, p, func() (replace.Result, error) { return eng.Replace(ctx, options, p) })
		})
		if err == nil {
			d.noteGroup(ctx, eng, p, planned)
		}
		return planned, err
	})
	if err != nil {
		return replace.Result{}, d.withRecovery(err)
	}
	return planned, nil
}

// withReplaced replaces a service of Compose by its container where the options name a snapshot. A copy has no service.
func withReplaced(ctx context.Context, d deps, eng engine, options replace.Options, do func(replace.Options) (replace.Result, error)) (replace.Result, error) {
	if options.Copy != "" {
		return do(options)
	}
	return withSnapshot(ctx, d, eng, options.Snapshot, func(word string) (replace.Result, error) {
		options.Snapshot = word
		return do(options)
	})
}

// planSettled finds out with dryRun what a restore in place would do. It first recovers a pending one:
// that needs no question, because any next command would do so.
func planSettled[T any](ctx context.Context, eng engine, p plan.Progress, dryRun func() (T, error)) (T, error) {
	for {
		planned, err := dryRun()
		pending, ok := errors.AsType[*replace.PendingError](err)
		if !ok {
			return planned, err
		}
		if err := eng.Settle(ctx, pending.Container, p); err != nil {
			return planned, err
		}
	}
}

// describeReplace says in a few sentences what a restore in place would do.
func describeReplace(r replace.Result, now time.Time) string {
	acts := []string{describeContainer(r)}
	var kept []string
	for _, v := range r.Volumes {
		entries := v.Created.Entries + v.Changed.Entries + v.Deleted.Entries
		switch {
		case v.Kept != "":
			kept = append(kept, v.Volume)
		case v.Made:
			acts = append(acts, "makes volume "+v.Volume+" again")
		case entries > 0:
			acts = append(acts, fmt.Sprintf("rewrites volume %s (%s)", v.Volume, plural(entries, "file changes", "files change")))
		}
	}
	for _, step := range r.Plan {
		if r.Copy != "" && step.Op == plan.OpRestoreVolume {
			acts = append(acts, "rewrites volume "+step.Target)
		}
	}
	text := fmt.Sprintf("This %s %s.", enumerate(acts), describeState(r, now))
	if config := describeConfig(r.Config); len(config) > 0 {
		text += " Of the configuration this changes " + strings.Join(config, "; ") + "."
	}
	if len(kept) > 0 {
		text += fmt.Sprintf(" %s left as it is: %s.", plural(int64(len(kept)), "volume is", "volumes are"), enumerate(kept))
	}
	if len(r.Others) > 0 {
		text += fmt.Sprintf(" Meanwhile %s stopped: %s.", plural(int64(len(r.Others)), "other container is", "other containers are"), enumerate(r.Others))
	}
	if r.Saves {
		return text + " A snapshot is taken first."
	}
	return text + " No snapshot is taken first."
}

// describeState says which state a container gets.
func describeState(r replace.Result, now time.Time) string {
	if r.Copy != "" {
		return fmt.Sprintf("with the present state of container %s, and removes %[1]s", r.Copy)
	}
	return fmt.Sprintf("with the state of %s: %s", ago(r.Snapshot.Created, now), r.Snapshot.Title())
}

func describeContainer(r replace.Result) string {
	verb := "replaces"
	if r.Stops {
		verb = "stops and replaces"
	}
	switch {
	case r.Keeps && r.Stops:
		return "stops container " + r.Old + ", starts it again"
	case r.Freezes:
		return "freezes container " + r.Old + " for a moment"
	case r.Keeps:
		return "keeps container " + r.Old
	}
	switch r.Old {
	case "":
		return "makes container " + r.Name + " again"
	case r.Name:
		return verb + " container " + r.Name
	}
	return fmt.Sprintf("%s container %s, which was named %[3]s when it was captured and will be named %[3]s again,", verb, r.Old, r.Name)
}

// plural is a number with what it counts.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// enumerate joins words as people do.
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// withoutNotes drops the notes among the events.
func withoutNotes(p plan.Progress) plan.Progress {
	return func(e plan.Event) {
		if e.Level != plan.LevelNote {
			p(e)
		}
	}
}
