//go:build linux

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Manifest is a manifest of the store that is open for reading. Whatever is wrong with it is a [DamagedError].
type Manifest struct {
	reader *manifest.Reader
	file   io.Closer
	name   string          // of its file in the store
	lost   []*DamagedError // of a head: packs that are not what they were
}

// OpenManifest opens the manifest of an archive.
func (s *Store) OpenManifest(id string, n int) (*Manifest, error) {
	if err := errors.Join(CheckID(id), checkArchive(n)); err != nil {
		return nil, err
	}
	m, err := s.openManifest(s.path("snapshots", id, strconv.Itoa(n)+".man"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("archive %d of snapshot %s is not in the store: %w", n, id, errdefs.ErrNotFound)
	}
	return m, err
}

// openCache opens a manifest whose entries are only compared with a volume.
func (s *Store) openCache(path string) (*Manifest, error) {
	return s.openManifestFile(path, manifest.NewCacheReader)
}

func (s *Store) openManifest(path string) (*Manifest, error) {
	return s.openManifestFile(path, manifest.NewReader)
}

// newReader opens the manifest in a file.
type newReader func(in io.ReaderAt, size int64, packs *manifest.PackTable) (*manifest.Reader, error)

func (s *Store) openManifestFile(path string, open newReader) (*Manifest, error) {
	name, err := filepath.Rel(s.root, path)
	if err != nil {
		name = path
	}
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, damagedFile(name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open manifest: %w", err), f.Close())
	}
	m := &Manifest{file: f, name: name}
	if m.reader, err = open(f, info.Size(), s.packs); err != nil {
		return nil, errors.Join(m.damaged(err), f.Close())
	}
	return m, nil
}

func (m *Manifest) damaged(err error) error {
	return &DamagedError{Pack: m.name, Offset: -1, Reason: reasonOf(err)}
}

// Packs lists the packs that the manifest refers to.
func (m *Manifest) Packs() []manifest.PackID { return m.reader.Packs() }

// LostPacks lists the packs that a head names and that are not what they were.
func (m *Manifest) LostPacks() []*DamagedError { return m.lost }

// Summary is what the footer says. Only after the last entry it is known to be true.
func (m *Manifest) Summary() manifest.Summary { return m.reader.Summary() }

// Next returns the next entry. After the last one it returns io.EOF if the whole manifest was as it should be.
func (m *Manifest) Next() (*manifest.Entry, error) {
	e, err := m.reader.Next()
	if err == nil || err == io.EOF { //nolint:errorlint // the reader returns io.EOF itself, and wraps every other one
		return e, err
	}
	return nil, m.damaged(err)
}

// Each hands the remaining entries to visit, until visit returns an error. Each returns that error, or what is wrong
// with the manifest.
func (m *Manifest) Each(visit func(*manifest.Entry) error) error {
	for {
		e, err := m.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
}

// eachLocation hands to visit where each piece of the remaining entries is stored.
func (m *Manifest) eachLocation(visit func(manifest.Location)) error {
	return m.Each(func(e *manifest.Entry) error {
		for i := range e.Pieces {
			visit(e.Pieces[i].At)
		}
		return nil
	})
}

// Close closes the file and frees what reading it takes.
func (m *Manifest) Close() {
	m.reader.Close()
	_ = m.file.Close() // it was only read
}
