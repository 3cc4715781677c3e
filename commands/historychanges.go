package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// How much the page of a history says of changes: each comparison takes a worker, and a page of a million lines helps nobody.
const (
	mostCompared = 50   // snapshots, the newest ones
	mostListed   = 1000 // changes of one snapshot
)

// pageChanges are the changes that a snapshot shows when it is clicked.
type pageChanges struct {
	Text    string // what diff prints
	Command string // prints all of it
	More    string // what the text leaves out
}

// comparedHistory is a history, and what changed in its newest snapshots, by their place in it.
type comparedHistory struct {
	history history.History
	changes map[int]pageChanges
}

// compareHistory finds out what changed in each of the newest snapshots since the one before. If two of them cannot be compared,
// the page says why.
func compareHistory(ctx context.Context, eng engine, h history.History, p plan.Progress) (comparedHistory, error) {
	all := comparedHistory{history: h, changes: map[int]pageChanges{}}
	for i := range h {
		before := h.Before(i)
		if h[i].Snapshot == nil || h[i].Snapshot.Kind == labels.KindState || before == nil {
			continue
		}
		changed := pageChanges{Command: fmt.Sprintf("docker snapshot diff %s %s", before.ID, h[i].Snapshot.ID)}
		if len(all.changes) >= mostCompared {
			changed.More = fmt.Sprintf("This page compares the newest %d snapshots.", mostCompared)
		} else if err := changed.compare(ctx, eng, before.ID, h[i].Snapshot.ID, p); err != nil {
			return comparedHistory{}, err
		}
		all.changes[i] = changed
	}
	return all, nil
}

// compare fills in what changed between two snapshots. The error is only that of a context that has ended.
func (c *pageChanges) compare(ctx context.Context, eng engine, before, after labels.ID, p plan.Progress) error {
	p.Status("compare", fmt.Sprintf("comparing snapshots %s and %s", before, after))
	var sums, files strings.Builder
	var more int64
	list, listed := changeList{out: &files, files: true, before: func() {}}, 0
	err := eng.Diff(ctx, diff.Options{Old: string(before), New: string(after)}, p, func(change diff.Change) {
		list.files = listed < mostListed
		list.add(change)
		if listed++; !list.files {
			more++
		}
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		c.More = "They could not be compared: " + safeText(err.Error())
		return nil
	case more > 0:
		c.More = plural(more, "more change", "more changes") + ", which this command lists:"
	}
	list.out = &sums
	if err := list.finish(); err != nil {
		return err
	}
	c.Text = sums.String() + files.String()
	return nil
}
