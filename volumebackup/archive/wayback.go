//go:build linux

package archive

import (
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// wayBack finds the pieces that it takes to go back from one archive, next, to another one, now. It walks both in step.
type wayBack struct {
	now, next cursor
	need      needPieces

	// Files with several names are decided upon at the end: if any name comes or goes, the file may have
	// to be made anew.
	linked   map[string]*manifest.Entry // by first name
	relinked map[string]bool            // first names of files whose names are not the same
}

func (w *wayBack) walk() error {
	for {
		e, err := w.now.peek()
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		w.now.skip()
		other, err := w.seekNext(e.Path)
		if err != nil {
			return err
		}
		if err := w.visit(e, other); err != nil {
			return err
		}
	}
	if err := w.passRest(); err != nil {
		return err
	}
	for path, e := range w.linked {
		if w.relinked[path] {
			if err := w.need(e, e.Pieces); err != nil {
				return err
			}
		}
	}
	return nil
}

// seekNext returns the entry of next that has a path, or nil, and passes those before it.
func (w *wayBack) seekNext(path string) (*manifest.Entry, error) {
	for {
		e, err := w.next.peek()
		if err != nil || e == nil {
			return nil, err
		}
		order := manifest.Compare(e.Path, path)
		if order > 0 {
			return nil, nil //nolint:nilnil // that there is none is no error
		}
		w.next.skip()
		if order == 0 {
			return e, nil
		}
		w.pass(e)
	}
}

// pass takes an entry that only next has. Going back deletes it, which takes no piece, unless it is one of
// several names.
func (w *wayBack) pass(e *manifest.Entry) {
	if e.Kind == manifest.HardLink {
		w.relinked[e.Target] = true
	}
}

func (w *wayBack) passRest() error {
	for {
		e, err := w.next.peek()
		if err != nil || e == nil {
			return err
		}
		w.next.skip()
		w.pass(e)
	}
}

// visit finds the pieces of e, an entry of now, that are lost when it becomes other, the entry of next, or goes.
func (w *wayBack) visit(e, other *manifest.Entry) error {
	if other == nil {
		other = &manifest.Entry{}
	}
	if e.Kind == manifest.HardLink && (other.Kind != manifest.HardLink || other.Target != e.Target) {
		w.relinked[e.Target] = true
	}
	if other.Kind == manifest.HardLink && (e.Kind != manifest.HardLink || other.Target != e.Target) {
		w.relinked[other.Target] = true
	}
	if e.Kind != manifest.Regular {
		return nil
	}
	if other.Kind != manifest.Regular {
		return w.need(e, e.Pieces)
	}
	if e.Shared || other.Shared {
		w.linked[e.Path] = e
	}
	return w.need(e, piecesAt(e, differ(e, other).pieces))
}

func piecesAt(e *manifest.Entry, places []int32) []manifest.Piece {
	pieces := make([]manifest.Piece, len(places))
	for i, n := range places {
		pieces[i] = e.Pieces[n]
	}
	return pieces
}
