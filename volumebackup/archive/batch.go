//go:build linux

package archive

import (
	"errors"
	"sync/atomic"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	// batchCost is how many bytes, of content and of paths, a batch holds about, and batchItems how many entries.
	batchCost  = 1 << 20
	batchItems = 256
)

// batch is a run of entries that is read by one goroutine.
type batch struct {
	items []*item
	cost  int64
	reads bool          // some of it has to be read
	done  chan struct{} // closed when it has been
}

// item is an entry, or some pieces of a large one.
type item struct {
	entry *manifest.Entry
	read  bool
	cost  int64

	// Of what the head knows: which pieces are compared with it, or what the entry must be equal to once it was read.
	doubted  []int32
	expected *manifest.Entry

	// Of a large file: the pieces of it that this item is for, and whether more items follow.
	file     *openFile
	from, to int
	more     bool

	// What reading gives.
	leftOut string // why it is; empty if it is not
	changed bool   // while it was read
	short   int64  // where the file turned out to end; -1 if not before its size
	pieces  []storedPiece
}

// The reasons to leave an entry out.
const (
	whyVanished = "left out: it vanished while it was read"
	whyDenied   = "left out: permission denied"
)

// reasonToSkip is why an entry with this error is left out; empty if the error ends the pass.
func reasonToSkip(err error) string {
	switch {
	case vanished(err):
		return whyVanished
	case denied(err):
		return whyDenied
	case errors.Is(err, manifest.ErrUnfit):
		return "left out: " + err.Error()
	default:
		return ""
	}
}

// openFile is a file that several items read.
type openFile struct {
	fd     int
	users  atomic.Int64
	before []manifest.Piece // as they were in the pass before, or in the head
}

// release closes the file with its last user.
func (f *openFile) release(open *openFiles) {
	if f.users.Add(-1) == 0 {
		open.close(f.fd)
	}
}

// storedPiece is a piece as it goes into a pack, unless it is known already.
type storedPiece struct {
	known  bool
	codec  manifest.Codec
	stored []byte
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

func (b *batch) add(it *item) {
	b.items = append(b.items, it)
	b.cost += it.cost + int64(len(it.entry.Path))
	b.reads = b.reads || it.read
}

// overflow says that the batch is full.
func (b *batch) overflow() bool { return b.cost >= batchCost || len(b.items) >= batchItems }

// seal marks a batch as read in which nothing has to be read.
func (b *batch) seal() {
	if !b.reads {
		close(b.done)
	}
}
