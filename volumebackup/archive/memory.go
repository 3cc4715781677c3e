//go:build linux

package archive

import (
	"hash/maphash"
	"sync"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// buffers lends out memory for pieces. Small ones are not worth the trouble.
type buffers struct {
	blocks, files sync.Pool
}

const smallBuffer = 32 << 10

func (b *buffers) get(n int) []byte {
	pool, size := b.pool(n)
	if pool == nil {
		return make([]byte, n)
	}
	if held, ok := pool.Get().(*[]byte); ok {
		return (*held)[:n]
	}
	return make([]byte, n, size)
}

// put takes back what get has lent.
func (b *buffers) put(held []byte) {
	if pool, size := b.pool(cap(held)); pool != nil && cap(held) == size {
		pool.Put(&held)
	}
}

func (b *buffers) pool(n int) (*sync.Pool, int) {
	switch {
	case n <= smallBuffer:
		return nil, 0
	case n <= blockLength:
		return &b.blocks, blockLength
	case n <= wholeFile:
		return &b.files, wholeFile
	default:
		return nil, 0
	}
}

// prints are fingerprints of the blocks of large files, which tell from one pass to
// the next what changed. They are ten times as fast as SHA-256, which counts while everything is
// frozen. Their key is random and never leaves the process, so nobody can make two blocks look the same.
type prints struct {
	seed  maphash.Seed
	files map[string][]uint64
}

func newPrints() prints { return prints{seed: maphash.MakeSeed(), files: map[string][]uint64{}} }

// remembered is what the pass before knew of a large file.
type remembered struct {
	pieces []store.Piece
	prints []uint64
}

// find returns the piece with this number if it has the same place and content.
func (r *remembered) find(n int, p *store.Piece, sum uint64) (*store.Piece, bool) {
	if n >= len(r.pieces) || n >= len(r.prints) || r.prints[n] != sum {
		return nil, false
	}
	old := &r.pieces[n]
	return old, old.Offset == p.Offset && old.Length == p.Length && old.At.Pack != 0
}
