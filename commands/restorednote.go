package commands

import (
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// noteReplaced says which state a restore in place has brought back.
func (d deps) noteReplaced(p plan.Progress, o replace.Options, all ...replace.Result) {
	if o.DryRun {
		return
	}
	for _, r := range all {
		p.Note("done", describeReplaced(r, o, d.clock.now()))
	}
}

// describeReplaced says in one sentence which state a restore in place has brought back, and to what.
func describeReplaced(r replace.Result, o replace.Options, now time.Time) string {
	if r.Copy != "" {
		return fmt.Sprintf("%s is now as copy %s was: %s", r.Name, r.Copy, r.Snapshot.Title())
	}
	what, verbs, from := r.Name, [2]string{"is", "it was"}, r.Snapshot.Container.Name
	if part, several := describePart(r, o); part != "" {
		what = part + " of " + r.Name
		if several {
			verbs = [2]string{"are", "they were"}
		}
	}
	if r.Name != from {
		verbs[1] += " in " + from
	}
	return fmt.Sprintf("%s %s now as %s %s: %s", what, verbs[0], verbs[1], ago(r.Snapshot.Created, now), r.Snapshot.Title())
}

// describePart names what went back if that is not the whole container, and reports whether it is several things.
func describePart(r replace.Result, o replace.Options) (part string, several bool) {
	parts := o.Only
	if o.Lost && len(parts) == 0 {
		parts = restoredVolumes(r)
	}
	switch {
	case len(parts) == 0:
		return "", false
	case len(o.Paths) > 0:
		return strings.Join(o.Paths, ", ") + " in " + enumerate(parts), true
	}
	return enumerate(parts), len(parts) > 1
}

// restoredVolumes are the names of the volumes that went back.
func restoredVolumes(r replace.Result) []string {
	var names []string
	for _, v := range r.Volumes {
		if v.Kept == "" {
			names = append(names, v.Volume)
		}
	}
	return names
}

// noteCopies says which state the copies have, and of what.
func (d deps) noteCopies(p plan.Progress, copies ...build.Restored) {
	if len(copies) == 0 {
		return
	}
	s := copies[0].Snapshot
	what := copies[0].Name + " is a copy of " + s.Container.Name
	if s.ImageID == "" { // only the volumes are left
		what = copies[0].Name + " has the volumes of " + s.Container.Name
	}
	if len(copies) > 1 {
		what = fmt.Sprintf("%s to %s are copies of %s", copies[0].Name, copies[len(copies)-1].Name, s.Container.Name)
	}
	p.Note("done", fmt.Sprintf("%s as it was %s: %s", what, ago(s.Created, d.clock.now()), s.Title()))
}

// ago says how long before now a moment was.
func ago(then, now time.Time) string {
	return strings.ToLower(units.HumanDuration(now.Sub(then))) + " ago"
}
