//go:build linux

package archive

import "slices"

// plan says what a restore does. Steps refer to entries by their place in the manifest, which is read again to carry
// them out, so that entries that do not change take no memory.
type plan struct {
	steps   []step
	deletes pathList        // in the order of the walk, so parents before children
	spared  map[string]bool // of deletes: directories that stay, for they hold something that is left alone
	fresh   bool            // the volume is empty
	plain   bool            // its root hands no group and no ACL down to what is made in it
	hasHead bool
	changes Changes
}

func (p *plan) isEmpty() bool { return len(p.steps) == 0 && p.deletes.length() == 0 }

// action is what a step does to an entry.
type action uint8

const (
	actCreate action = iota // make it; nothing is at its path by then
	actUpdate               // write the pieces that differ, then set attributes
	actAdjust               // set attributes
	actTouch                // set the times of a directory whose entries change
)

// step is what happens to one entry of the manifest.
type step struct {
	ordinal int64
	action  action
	pieces  []int32 // for an update: which ones differ
	holes   bool    // for an update: the holes differ
}

// sort puts the steps in the order of the manifest.
func (p *plan) sort() {
	slices.SortFunc(p.steps, func(a, b step) int { return int(a.ordinal - b.ordinal) })
}

// ChangeKind is what happens to an entry.
type ChangeKind int

// The kinds of change.
const (
	Created ChangeKind = iota
	Changed
	Deleted
)

// Totals counts entries and bytes.
type Totals struct{ Entries, Bytes int64 }

// Changes sums up by kind what a restore does; what is created or changed counts the bytes that are written.
type Changes [3]Totals

func (c *Changes) add(kind ChangeKind, bytes int64) {
	c[kind].Entries++
	c[kind].Bytes += bytes
}
