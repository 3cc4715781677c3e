package changes

import (
	"errors"
	"io"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Compare hands to visit what has to happen to the tree before to make the one after of it, sorted by path. A nil tree is
// empty. Compare ends with the first error, also if visit returns one.
func Compare(before, after Tree, visit func(Change) error) error {
	c := comparison{old: newSide(before), new: newSide(after), visit: visit}
	return c.run()
}

// comparison walks two trees in step.
type comparison struct {
	old, new side
	visit    func(Change) error
}

func (c *comparison) run() error {
	for {
		before, err := c.old.peek()
		if err != nil {
			return err
		}
		after, err := c.new.peek()
		if err != nil {
			return err
		}
		switch {
		case before == nil && after == nil:
			return nil
		case after == nil || before != nil && manifest.Compare(before.Path, after.Path) < 0:
			c.old.take()
			err = c.visit(Change{Path: before.Path, Type: Deleted, SizeDelta: -size(before)})
		case before == nil || manifest.Compare(before.Path, after.Path) > 0:
			c.new.take()
			err = c.visit(Change{Path: after.Path, Type: Created, SizeDelta: size(after)})
		default:
			c.old.take()
			c.new.take()
			err = c.both(before, after)
		}
		if err != nil {
			return err
		}
	}
}

// both compares two entries at the same path.
func (c *comparison) both(before, after *manifest.Entry) error {
	delta := size(after) - size(before)
	regrouped := c.regrouped(before, after)
	before, after = c.old.file(before), c.new.file(after)
	same, err := c.sameContent(before, after)
	switch {
	case err != nil:
		return err
	case !same || regrouped:
		return c.visit(Change{Path: c.old.path, Type: Modified, SizeDelta: delta})
	case !samePermissions(before, after):
		return c.visit(Change{Path: c.old.path, Type: PermissionsChanged, SizeDelta: delta})
	}
	return nil
}

// regrouped tells whether an entry is a name of another file than the first path that both trees have for its file.
func (c *comparison) regrouped(before, after *manifest.Entry) bool {
	had, hadAny := c.old.common(before)
	has, hasAny := c.new.common(after)
	return hadAny != hasAny || had != has
}

func (c *comparison) sameContent(before, after *manifest.Entry) (bool, error) {
	if before.Kind != after.Kind || before.Target != after.Target || before.Major != after.Major || before.Minor != after.Minor {
		return false, nil
	}
	if before.Kind == manifest.Directory {
		return true, nil
	}
	if before.Size != after.Size || before.Modified != after.Modified {
		return false, nil
	}
	if before.Kind != manifest.Regular {
		return true, nil
	}
	if err := errors.Join(c.old.read(before), c.new.read(after)); err != nil {
		return false, err
	}
	return slices.Equal(before.Holes, after.Holes) && slices.EqualFunc(before.Pieces, after.Pieces, samePiece), nil
}

func samePiece(a, b manifest.Piece) bool {
	return a.Offset == b.Offset && a.Length == b.Length && a.Sum == b.Sum
}

func samePermissions(a, b *manifest.Entry) bool {
	return a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && slices.Equal(a.Xattrs, b.Xattrs)
}

// side is one of the trees, and what is known of its files with several names.
type side struct {
	tree   Tree
	next   *manifest.Entry
	ended  bool
	path   string                     // of the entry that was taken last
	files  map[string]*manifest.Entry // by their first names
	paths  map[string]string          // by their first names: the first path that the other tree has, too
	unread map[*manifest.Entry]bool   // files with several names whose content was not asked for yet
}

func newSide(tree Tree) side {
	return side{
		tree: tree, ended: tree == nil, files: map[string]*manifest.Entry{}, paths: map[string]string{},
		unread: map[*manifest.Entry]bool{},
	}
}

// peek returns the entry that comes next, or nil at the end.
func (s *side) peek() (*manifest.Entry, error) {
	if s.ended || s.next != nil {
		return s.next, nil
	}
	e, err := s.tree.Next()
	if errors.Is(err, io.EOF) {
		s.ended = true
		return nil, nil //nolint:nilnil // the end is no error
	}
	s.next = e
	return e, err
}

// take goes on to the next entry.
func (s *side) take() {
	s.path = s.next.Path
	if s.next.Shared {
		s.files[s.path], s.unread[s.next] = s.next, true
	}
	s.next = nil
}

// file is the entry of the file that an entry is a name of.
func (s *side) file(e *manifest.Entry) *manifest.Entry {
	if first := s.files[e.Target]; e.Kind == manifest.HardLink && first != nil {
		return first
	}
	return e
}

// common returns the first path of an entry's file that both trees have, if one came before. Else it is this one.
func (s *side) common(e *manifest.Entry) (path string, earlier bool) {
	first := e.Path
	switch {
	case e.Kind == manifest.HardLink:
		first = e.Target
	case !e.Shared:
		return "", false
	}
	if path, earlier = s.paths[first]; !earlier {
		s.paths[first] = e.Path
	}
	return path, earlier
}

// read has the tree add an entry's content, once.
func (s *side) read(e *manifest.Entry) error {
	if e.Shared && !s.unread[e] {
		return nil
	}
	delete(s.unread, e)
	return s.tree.Read(e)
}
