package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Nothing means that a [Node] follows none that is known.
const Nothing = -1

// Node is a snapshot that was taken, or a restore of one.
type Node struct {
	At       time.Time
	Snapshot *catalog.Snapshot // nil: it is a restore
	Restore  catalog.Restore
	Follows  int        // index of the node that it came after; [Nothing]: it is the first that is known
	Gap      bool       // snapshots in between were removed
	Here     []Standing // the containers that have not been captured or restored since
}

// Standing is a container that exists.
type Standing struct {
	Container string // name
	ID        string
	State     string
}

// History is what happened, the newest first. A node follows one that comes later in the list.
type History []Node

// Of puts snapshots and restores in order. Containers are all that exist.
func Of(snapshots []catalog.Snapshot, restores []catalog.Restore, containers []container.Summary) History {
	var h History
	for i := range snapshots {
		h = append(h, Node{At: snapshots[i].Created, Snapshot: &snapshots[i]})
	}
	for _, r := range restores {
		h = append(h, Node{At: r.At, Restore: r})
	}
	slices.SortStableFunc(h, newestFirst)
	for i := range h {
		if h[i].Snapshot == nil {
			h[i].Follows = h.find(i, func(n Node) bool { return n.Snapshot != nil && n.Snapshot.ID == h[i].Restore.Snapshot })
		} else {
			h[i].Follows, h[i].Gap = h.before(i)
		}
	}
	for _, c := range containers {
		h.place(c)
	}
	return h
}

// newestFirst sorts a restore before the snapshot that was taken for it.
func newestFirst(a, b Node) int {
	kind := func(n Node) int {
		if n.Snapshot == nil {
			return 0
		}
		return 1
	}
	id := func(n Node) string {
		if n.Snapshot == nil {
			return n.Restore.Container
		}
		return string(n.Snapshot.ID)
	}
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(kind(a), kind(b)), cmp.Compare(id(b), id(a)))
}

// find returns the newest node before i for which is is true.
func (h History) find(i int, is func(Node) bool) int {
	at := slices.IndexFunc(h[i+1:], is)
	if at < 0 {
		return Nothing
	}
	return i + 1 + at
}

// before finds what snapshot i came after: the one that its labels name or, if it is the first of a container that a
// restore has made, that restore. If the one that they name was removed, it is the newest of the same container that is
// left, or the restore that made it.
func (h History) before(i int) (follows int, gap bool) {
	s := h[i].Snapshot
	if s.Parent == "" {
		return Nothing, false
	}
	named := h.find(i, func(n Node) bool { return n.Snapshot != nil && n.Snapshot.ID == s.Parent })
	if named != Nothing && isOfSame(h[named].Snapshot, s) {
		return named, false
	}
	restored := h.find(i, func(n Node) bool {
		return n.Snapshot == nil && n.Restore.Snapshot == s.Parent && n.Restore.Container == s.Container.Name
	})
	if restored != Nothing {
		return restored, false
	}
	if named != Nothing {
		return named, false
	}
	same := h.find(i, func(n Node) bool {
		return n.Snapshot != nil && isOfSame(n.Snapshot, s) || n.Snapshot == nil && n.Restore.ContainerID != "" && n.Restore.ContainerID == s.Container.ID
	})
	return same, same != Nothing
}

// isOfSame tells whether two snapshots are of one container, or of one line of states.
func isOfSame(a, b *catalog.Snapshot) bool {
	return a.Kind == b.Kind && a.Container.ID == b.Container.ID && (a.Kind != labels.KindState || a.Line == b.Line)
}

// place finds where a container stands: at its newest snapshot, or at the restore that made it.
func (h History) place(c container.Summary) {
	at := slices.IndexFunc(h, func(n Node) bool {
		if n.Snapshot == nil {
			return n.Restore.ContainerID == c.ID
		}
		return n.Snapshot.Container.ID == c.ID
	})
	if at >= 0 {
		h[at].Here = append(h[at].Here, Standing{Container: dockerop.SummaryName(c), ID: c.ID, State: c.State})
	}
}

// Changed is what a snapshot has otherwise than the one that it came after.
type Changed struct {
	Volume  string
	Entries int64 // how many more
	Bytes   int64 // how many more it holds
}

// Changes compares the volumes of a snapshot with those of the snapshot that it came after, directly or by a restore. A
// volume whose content has the same root is equal. It returns false if there is nothing to compare with.
func (h History) Changes(i int) ([]Changed, bool) {
	s, before := h[i].Snapshot, h.Before(i)
	if s == nil || before == nil {
		return nil, false
	}
	had, found := archivesOf(before), []Changed{}
	for _, m := range s.Mounts {
		if m.Archive == nil {
			continue
		}
		word := m.Word()
		old, known := had[m.Destination]
		if known && old.Root == m.Archive.Root || slices.ContainsFunc(found, func(c Changed) bool { return c.Volume == word }) {
			continue
		}
		found = append(found, Changed{Volume: word, Entries: m.Archive.Entries - old.Entries, Bytes: m.Archive.Bytes - old.Bytes})
	}
	return found, true
}

// Before returns the snapshot whose state node i began with, or nil.
func (h History) Before(i int) *catalog.Snapshot {
	for i = h[i].Follows; i != Nothing; i = h[i].Follows {
		if h[i].Snapshot != nil {
			return h[i].Snapshot
		}
	}
	return nil
}

func archivesOf(s *catalog.Snapshot) map[string]labels.Archive {
	all := map[string]labels.Archive{}
	for _, m := range s.Mounts {
		if m.Archive != nil {
			all[m.Destination] = *m.Archive
		}
	}
	return all
}
