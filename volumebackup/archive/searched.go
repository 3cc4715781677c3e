//go:build linux

package archive

import (
	"encoding/hex"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// searched are directories that are left out, and that the walk goes into because something in them may be included.
// They are archived once that is found.
type searched struct {
	now  bool // the entry that is visited is one
	dirs []*item
}

// add takes the entry that is visited, and returns what is archived by now: the entry, after those that it is in. It
// returns nothing while only searching.
func (s *searched) add(it *item) []*item {
	above := s.above(it.entry.Path)
	if s.now {
		s.dirs = append(above, it)
		return nil
	}
	s.dirs = nil
	return append(above, it)
}

// above are those that an entry is in. The walk has left the others.
func (s *searched) above(path string) []*item {
	n := len(s.dirs)
	for n > 0 && !isIn(path, s.dirs[n-1].entry.Path) {
		n--
	}
	return s.dirs[:n]
}

// kept is an archive whose entries are not excluded although a .gitignore says so by now; one without a cursor has none.
type kept struct{ entries *cursor }

func openKept(s *store.Store, e *labels.Exclusions) (kept, error) {
	if e.IsEmpty() || e.Kept == nil {
		return kept{}, nil
	}
	decoded, err := hex.DecodeString(e.Kept.Root)
	if err != nil {
		return kept{}, fmt.Errorf("root of the archive that is kept: %w", err)
	}
	root := manifest.Sum(decoded)
	m, err := openArchive(s, Ref{Snapshot: string(e.Kept.Snapshot), Archive: e.Kept.Index, Root: &root})
	if err != nil {
		return kept{}, err
	}
	entries := newCursor(m)
	return kept{&entries}, nil
}

// has tells whether the archive has an entry at a path. It is asked in the order of a walk.
func (k kept) has(path string) (bool, error) {
	if k.entries == nil {
		return false, nil
	}
	e, err := k.entries.seek(path)
	return e != nil, err
}

func (k kept) close() {
	if k.entries != nil {
		k.entries.close()
	}
}

// readEntry returns the content of a small file in an archive.
func readEntry(s *store.Store, e *manifest.Entry, buffer *store.Buffer) ([]byte, error) {
	text := make([]byte, e.Size)
	for i := range e.Pieces {
		p := &e.Pieces[i]
		content, err := s.ReadPiece(p, e.Path, buffer)
		if err != nil {
			return nil, err
		}
		copy(text[min(p.Offset, e.Size):], content)
	}
	return text, nil
}
