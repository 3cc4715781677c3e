//go:build linux

package archive

import (
	"context"
	"crypto/sha256"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

const (
	// tarBlock is what a pack rounds the length of pieces up to; saving less is no use.
	tarBlock = 512

	// worthwhile is the part of a piece that compression must save, as 1/worthwhile.
	worthwhile = 32
)

// reader reads, hashes and compresses the files of batches.
type reader struct {
	*pass
	compressor
	stored store.Buffer // for pieces that are read in the store
}

func newReader(p *pass) *reader { return &reader{pass: p} }

func (r *reader) read(ctx context.Context, b *batch) error {
	defer close(b.done)
	for _, it := range b.items {
		if !it.read {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := r.readItem(it)
		if it.leftOut = reasonToSkip(err); it.leftOut != "" {
			continue
		}
		if err != nil {
			return pathError("read", it.entry.Path, err)
		}
	}
	return nil
}

func (r *reader) readItem(it *item) error {
	it.short = -1
	if it.doubted != nil {
		return r.compareContent(it)
	}
	if it.file != nil {
		defer it.file.release(&r.open)
		if err := r.readPieces(it, it.file.fd); err != nil {
			return err
		}
		return r.checkUnchanged(it, it.file.fd)
	}
	e := it.entry
	fd, err := r.tree.openFile(e.Path)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if err := r.prepare(fd, e); err != nil {
		return err
	}
	it.from, it.to = 0, len(e.Pieces)
	if err := r.readPieces(it, fd); err != nil {
		return err
	}
	return r.checkUnchanged(it, fd)
}

// readPieces fills in the sums of an item's pieces.
func (r *reader) readPieces(it *item, fd int) error {
	for i := it.from; i < it.to; i++ {
		p := &it.entry.Pieces[i]
		content := r.buffers.get(int(p.Length))
		n, err := readFull(fd, content, p.Offset)
		if err != nil {
			return err
		}
		r.counter.Bytes.Add(int64(n))
		if n < len(content) && it.short < 0 {
			it.short = p.Offset + int64(n)
		}
		p.Length = uint32(n)
		if it.file != nil {
			p.Fingerprint = r.fingerprints.Fingerprint(content[:n])
		}
		known := it.file != nil && it.file.unchanged(i, p)
		if known && r.isDoubted() && sha256.Sum256(content[:n]) != p.Sum {
			return &contradictionError{it.entry.Path}
		}
		if n == 0 || known {
			r.buffers.put(content)
			it.pieces = append(it.pieces, storedPiece{known: true})
			continue
		}
		stored, err := r.encode(p, it.entry.Path, content[:n])
		if err != nil {
			return err
		}
		it.pieces = append(it.pieces, stored)
	}
	return nil
}

// unchanged recognizes a block that has not changed since the pass before.
func (f *openFile) unchanged(n int, p *manifest.Piece) bool {
	if n >= len(f.before) {
		return false
	}
	old := &f.before[n]
	if old.Fingerprint != p.Fingerprint || old.Offset != p.Offset || old.Length != p.Length || old.At.Pack == 0 {
		return false
	}
	p.Sum, p.At = old.Sum, old.At
	return true
}

// encode hashes a piece of the file at path, and compresses it if it is new and that pays.
func (r *reader) encode(p *manifest.Piece, path string, content []byte) (storedPiece, error) {
	p.Sum = sha256.Sum256(content)
	if err := r.loadIndex(); err != nil {
		return storedPiece{}, err
	}
	if at, ok := r.index.Find(&p.Sum); ok {
		p.At = at
		if r.isInStore(p, path) {
			r.buffers.put(content)
			return storedPiece{known: true}, nil
		}
		p.At = manifest.Location{}
	}
	codec, stored, err := r.compressor.encode(content)
	return storedPiece{codec: codec, stored: stored}, err
}

func roundUp(n int) int { return (n + tarBlock - 1) / tarBlock * tarBlock }

// checkUnchanged notes that a file was written to while it was read.
func (r *reader) checkUnchanged(it *item, fd int) error {
	if it.more {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	e := it.entry
	it.changed = st.Size != e.Size || timestamp(st.Mtim) != e.Modified || timestamp(st.Ctim) != e.Cached.Changed
	return nil
}
