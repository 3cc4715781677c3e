//go:build linux

package archive

import (
	"slices"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// plan says what a restore does. Steps refer to entries by their place in the manifest, which is read again to carry
// them out, so that entries that do not change take no memory.
type plan struct {
	steps   []step
	deletes pathList // in the order of the walk, so parents before children
	fresh   bool     // the volume is empty
	plain   bool     // its root hands no group and no ACL down to what is made in it
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

// Change is what happens to one entry, for people.
type Change struct {
	Kind  ChangeKind
	Path  string
	Bytes int64
}

// ChangeKind is what kind of change it is.
type ChangeKind int

// The kinds of change.
const (
	Created ChangeKind = iota
	Changed
	Deleted
)

// Totals counts entries and bytes.
type Totals struct{ Entries, Bytes int64 }

// maxChanges is how many changes are listed by name, and maxChangeBytes how long
// these names may be together.
const (
	maxChanges     = 1000
	maxChangeBytes = 1 << 20
)

// Changes sums up what a restore does; what is created or changed counts the bytes that are written.
type Changes struct {
	Totals [3]Totals // by kind
	List   []Change  // the first ones
	length int       // of the names in it
}

func (c *Changes) add(kind ChangeKind, path string, bytes int64) {
	c.Totals[kind].Entries++
	c.Totals[kind].Bytes += bytes
	if c.length += len(path); len(c.List) < maxChanges && c.length <= maxChangeBytes {
		c.List = append(c.List, Change{Kind: kind, Path: path, Bytes: bytes})
	}
}

func (c Changes) sorted() Changes {
	slices.SortStableFunc(c.List, func(a, b Change) int { return manifest.Compare(a.Path, b.Path) })
	return c
}
