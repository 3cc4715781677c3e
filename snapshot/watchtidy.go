package snapshot

import (
	"context"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
)

// tidier knows when to look for snapshots that have expired. A look lists all snapshots, so there is
// none before something has changed or expires.
type tidier struct {
	due  bool      // snapshots have come since
	next time.Time // when the next one expires; zero: none does
	last time.Time // when the last look began
	busy bool
}

// looks tells whether it is time to look.
func (t *tidier) looks(now time.Time) bool {
	expires := !t.next.IsZero() && !t.next.After(now)
	return !t.busy && (t.due || expires) && (t.last.IsZero() || now.Sub(t.last) >= tidyInterval)
}

// tidyUp removes what has expired, while the watching goes on: the snapshots of the containers that
// the user named, or of all.
func (w *watcher) tidyUp(ctx context.Context) {
	now := w.engine.now()
	if !w.tidy.looks(now) {
		return
	}
	w.tidy.due, w.tidy.busy, w.tidy.last, w.tidy.next = false, true, now, time.Time{}
	w.working.Go(func() {
		next := w.prune(ctx, retention.Options{Policy: w.options.Policy, ExpiredOnly: true}, w.options.Containers)
		select {
		case w.tidied <- next:
		case <-ctx.Done():
		}
	})
}

// limit removes what is beyond the limits, now that a container has one more snapshot. What the user
// asks for is for the containers that are watched, so only this one's snapshots are looked at then.
func (w *watcher) limit(ctx context.Context, d watch.Decision) {
	var of []string
	if len(w.options.Containers) > 0 || w.options.Limits != (retention.Limits{}) {
		of = []string{d.Name}
	}
	w.prune(ctx, retention.Options{Policy: w.options.Policy, Limits: w.options.Limits, Automatic: true}, of)
}

// prune removes snapshots, of some containers or of all, and returns when the next one expires.
func (w *watcher) prune(ctx context.Context, o retention.Options, containers []string) (next time.Time) {
	terms := make([]string, len(containers))
	for i, name := range containers {
		terms[i] = "container=" + name
	}
	filter, err := catalog.ParseFilter(terms, w.engine.now())
	if err == nil {
		var pruned removal.Pruned
		pruned, err = w.engine.Prune(ctx, removal.PruneOptions{Options: o, Filter: filter}, w.warnings(watch.Decision{}))
		next = w.tellRemoved(pruned)
	}
	if err != nil && ctx.Err() == nil {
		w.warn("", "", err)
		return w.engine.now() // look again
	}
	return next
}

// tellRemoved reports what was removed, and returns when the next of the others expires.
func (w *watcher) tellRemoved(pruned removal.Pruned) (next time.Time) {
	for _, one := range pruned.All {
		s := one.Snapshot
		r := watch.Report{What: watch.Removed, Container: s.Container.Name, ContainerID: s.Container.ID, Snapshot: string(s.ID), Reason: one.Detail}
		switch {
		case one.Err != nil:
			r.What, r.Error = watch.Warning, one.Err.Error()
			w.tell(r)
		case one.Removed:
			w.tell(r)
		case s.Expires.After(w.engine.now()) && (next.IsZero() || s.Expires.Before(next)):
			next = s.Expires
		}
	}
	return next
}
