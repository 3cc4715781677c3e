package space

import (
	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// Occupied is what some snapshots occupy.
type Occupied struct {
	Group     string // what they have in common; empty: nothing, or all of them
	Snapshots int
	Archived  int   // how many of them have archives of volumes
	Logical   int64 // bytes of the volumes' content, once for each snapshot
	Images    Share
	Archives  Share
}

// Bytes is what they occupy in all.
func (o Occupied) Bytes() Share {
	return Share{Unique: o.Images.Unique + o.Archives.Unique, Shared: o.Images.Shared + o.Archives.Shared}
}

// Report tells what the chosen snapshots occupy.
type Report struct {
	All       Occupied
	Groups    []Occupied // in the order of their newest snapshots
	Snapshots []catalog.Snapshot
	Each      []Occupied // of Snapshots
	Stores    []archives.Holding
}

// NewReport tells what the snapshots occupy for which chosen is true; group says to what each belongs.
// all are those that were measured.
func NewReport(all []catalog.Snapshot, m Measured, chosen func(catalog.Snapshot) bool, group func(catalog.Snapshot) string) Report {
	r := Report{Stores: m.Stores}
	whole, groups, each := make([]int, len(all)), make([]int, len(all)), make([]int, len(all))
	known, names := map[string]int{}, []string(nil)
	for i, s := range all {
		if !chosen(s) {
			whole[i], groups[i], each[i] = nobody, nobody, nobody
			continue
		}
		name := group(s)
		if _, ok := known[name]; !ok {
			known[name] = len(names)
			names = append(names, name)
		}
		groups[i], each[i] = known[name], len(r.Snapshots)
		r.Snapshots = append(r.Snapshots, s)
	}
	r.All = divide(all, m, whole, []string{""})[0]
	r.Groups = divide(all, m, groups, names)
	r.Each = divide(all, m, each, make([]string, len(r.Snapshots)))
	return r
}

// divide adds up what groups of snapshots occupy. groups has the group of each snapshot, an index of
// names, or nobody.
func divide(all []catalog.Snapshot, m Measured, groups []int, names []string) []Occupied {
	found := make([]Occupied, len(names))
	for i, s := range all {
		if groups[i] == nobody {
			continue
		}
		one := &found[groups[i]]
		one.Snapshots++
		archived := false
		for _, mount := range s.Mounts {
			if mount.Archive != nil {
				archived = true
				one.Logical += mount.Archive.Bytes
			}
		}
		if archived {
			one.Archived++
		}
	}
	images, pieces := shares(m.Layers, groups, len(names)), shares(m.Pieces, groups, len(names))
	addBases(images, m.Bases, groups)
	for i, name := range names {
		found[i].Group, found[i].Images, found[i].Archives = name, images[i], pieces[i]
	}
	return found
}

// Grouping is what snapshots may have in common.
type Grouping string

// The groupings.
const (
	ByContainer Grouping = "container"
	ByRun       Grouping = "run"
	ByLine      Grouping = "line"
	ByProject   Grouping = "project"
)

// GroupOf returns to what a snapshot belongs; empty: to nothing.
func (g Grouping) GroupOf(s catalog.Snapshot) string {
	switch g {
	case ByContainer:
		if s.Kind != labels.KindState {
			return s.Container.Name
		}
	case ByRun:
		return s.RunID
	case ByLine:
		return s.Line
	case ByProject:
		return s.Project()
	}
	return ""
}
