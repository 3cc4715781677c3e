//go:build linux

package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Buffer is memory that reading pieces reuses; one for each goroutine.
type Buffer struct{ stored, content []byte }

// Room returns so many bytes of the buffer, to be overwritten.
func (b *Buffer) Room(length int) []byte {
	if cap(b.content) < length {
		b.content = make([]byte, 0, max(length, 64<<10))
	}
	return b.content[:length]
}

// ReadPiece returns the bytes of a piece of the file at path, checked. They are
// valid until the buffer is used again.
func (s *Store) ReadPiece(p *manifest.Piece, path string, b *Buffer) ([]byte, error) {
	content, err := s.readPiece(p, b)
	if err == nil && sha256.Sum256(content) != p.Sum {
		err = errors.New("its SHA-256 is not what it was")
	}
	if err != nil {
		return nil, s.damagedPiece(p, path, err)
	}
	return content, nil
}

func (s *Store) damagedPiece(p *manifest.Piece, path string, err error) error {
	if p.At.Pack == 0 {
		return &DamagedError{Path: path, Pack: "the store", Offset: -1, Reason: "a piece of a file is in none of its packs"}
	}
	return &DamagedError{Path: path, Pack: s.packFile(p.At.Pack), Offset: p.At.Offset, Reason: reasonOf(err)}
}

func (s *Store) readPiece(p *manifest.Piece, b *Buffer) ([]byte, error) {
	f, err := s.files.open(p.At.Pack)
	if err != nil {
		return nil, err
	}
	if cap(b.stored) < int(p.At.Stored) {
		b.stored = make([]byte, max(int(p.At.Stored), 64<<10))
	}
	stored := b.stored[:p.At.Stored]
	if _, err := f.ReadAt(stored, p.At.Offset); err != nil {
		return nil, noEOF(err)
	}
	if p.At.Codec == manifest.Raw {
		return stored, nil
	}
	if cap(b.content) < int(p.Length) {
		b.content = make([]byte, 0, max(int(p.Length), 64<<10))
	}
	b.content, err = s.unzip.decode(stored, b.content[:0])
	if err != nil {
		return nil, err
	}
	if len(b.content) != int(p.Length) {
		return nil, fmt.Errorf("it has %d bytes instead of %d", len(b.content), p.Length)
	}
	return b.content, nil
}

// decompressor is made when it is first needed.
type decompressor struct {
	once sync.Once
	zip  *zstd.Decoder
	err  error
}

func (d *decompressor) decode(src, dst []byte) ([]byte, error) {
	d.once.Do(func() {
		d.zip, d.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)+1),
			zstd.WithDecoderMaxMemory(manifest.MaxPiece), zstd.WithDecoderLowmem(true))
	})
	if d.err != nil {
		return nil, d.err
	}
	return d.zip.DecodeAll(src, dst)
}

// packFiles keeps packs open for reading.
type packFiles struct {
	store *Store
	mu    sync.Mutex
	files map[manifest.PackID]*os.File
}

// maxOpenPacks bounds the file descriptors that a long line of snapshots takes.
const maxOpenPacks = 256

func (p *packFiles) open(id manifest.PackID) (*os.File, error) {
	if id == 0 {
		return nil, os.ErrNotExist
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.files[id]; ok {
		return f, nil
	}
	f, err := openRegular(p.store.packPath(id), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if p.files == nil {
		p.files = map[manifest.PackID]*os.File{}
	}
	for old := range p.files {
		if len(p.files) < maxOpenPacks {
			break
		}
		delete(p.files, old) // closed by its finalizer: someone may be reading from it
	}
	p.files[id] = f
	return f, nil
}

func (p *packFiles) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	p.files = nil
	return errors.Join(errs...)
}
