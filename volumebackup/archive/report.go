//go:build linux

package archive

import (
	"sync"
	"sync/atomic"
)

// Reporter is told what happens during an operation. Several goroutines call its methods.
type Reporter interface {
	// Warn tells of an entry that could not be kept exactly.
	Warn(mount int, path, message string)
}

// Counter counts what an operation has done so far, for whoever wants to show it.
type Counter struct {
	Files atomic.Int64
	Bytes atomic.Int64
	Total atomic.Int64 // bytes in all, as far as can be told by now; zero while unknown
}

// warner tells a reporter of the entries of one mount, and counts them.
type warner struct {
	reporter Reporter
	mount    int
	count    atomic.Int64
}

func (w *warner) warn(path, message string) {
	w.count.Add(1)
	w.reporter.Warn(w.mount, path, message)
}

// maxNotes is how many warnings of a pass are kept, and maxNoteBytes how long their paths may be together.
const (
	maxNotes     = 1000
	maxNoteBytes = 1 << 20
)

// notes are the warnings of the last pass. They only count if no other pass follows: that might capture what this one
// could not.
type notes struct {
	mu     sync.Mutex
	count  int64
	first  []note
	length int // of the paths in it
}

type note struct{ path, message string }

func (n *notes) warn(path, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	if n.length += len(path); len(n.first) < maxNotes && n.length <= maxNoteBytes {
		n.first = append(n.first, note{path, message})
	}
}

func (n *notes) clear() { n.count, n.first, n.length = 0, nil, 0 }

// report hands the notes on.
func (n *notes) report(r Reporter, mount int) {
	for _, note := range n.first {
		r.Warn(mount, note.path, note.message)
	}
}
