//go:build linux

package archive

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// seen is an entry of the volume, as far as the plan needs it.
type seen struct {
	path   string
	kind   manifest.Kind
	stat   unix.Stat_t
	xattrs []manifest.Xattr
	target string
	// known says that the file is clean, so base tells its content.
	known bool
	base  *manifest.Entry
}

// see looks at an entry. It reads nothing that the head knows.
func (p *planner) see(f *found, base *manifest.Entry) (*seen, error) {
	kind, _ := kindOf(f.stat.Mode)
	s := &seen{path: f.path, kind: kind, stat: f.stat, base: base}
	if s.known = isClean(base, kind, &f.stat); s.known {
		s.xattrs, s.target = base.Xattrs, base.Target
		return s, nil
	}
	var err error
	if s.xattrs, err = readXattrs(pathXattrs(f.dir, f.name)); err != nil {
		return nil, pathError("read xattrs of", f.path, err)
	}
	if kind == manifest.Symlink {
		if s.target, err = readLink(f.dir, f.name); err != nil {
			return nil, pathError("read symlink", f.path, err)
		}
	}
	return s, nil
}

// canBecome says that the entry can become e without being replaced.
func (s *seen) canBecome(e *manifest.Entry) bool {
	if s.kind != e.Kind {
		return false
	}
	switch e.Kind {
	case manifest.Symlink:
		return s.target == e.Target
	case manifest.BlockDevice, manifest.CharacterDevice:
		return e.Major == unix.Major(s.stat.Rdev) && e.Minor == unix.Minor(s.stat.Rdev)
	default:
		return true
	}
}

func (s *seen) sameAttributes(e *manifest.Entry) bool {
	return s.stat.Mode&0o7777 == e.Mode && s.stat.Uid == e.UID && s.stat.Gid == e.GID &&
		timestamp(s.stat.Mtim) == e.Modified && slices.Equal(s.xattrs, e.Xattrs)
}

// difference says where a file differs from its entry in the manifest.
type difference struct {
	pieces []int32
	holes  bool
}

// differ compares with a file of which the pieces are known.
func differ(e, there *manifest.Entry) difference {
	d := difference{holes: !slices.Equal(e.Holes, there.Holes)}
	have := there.Pieces
	for i := range e.Pieces {
		p := &e.Pieces[i]
		for len(have) > 0 && have[0].Offset < p.Offset {
			have = have[1:]
		}
		same := len(have) > 0 && have[0].Offset == p.Offset && have[0].Length == p.Length && have[0].Sum == p.Sum
		if !same || d.holes && overlaps(there.Holes, p) {
			d.pieces = append(d.pieces, int32(i))
		}
	}
	return d
}

// overlaps says whether a piece has bytes in any of the holes.
func overlaps(holes []manifest.Range, p *manifest.Piece) bool {
	return slices.ContainsFunc(holes, func(h manifest.Range) bool {
		return h.Offset < p.End() && h.Offset+h.Length > p.Offset
	})
}

// compare reads a file of the volume to find out what differs.
func (p *planner) compare(s *seen, e *manifest.Entry, ordinal int64, adjust bool) error {
	fd, err := p.tree.openFile(s.path)
	if err != nil {
		return pathError("compare", s.path, err)
	}
	defer closeFD(fd)
	there := &manifest.Entry{Size: s.stat.Size}
	if err := layout(fd, there, isSparse(&s.stat)); err != nil {
		return pathError("compare", s.path, err)
	}
	var known []manifest.Piece
	if s.base != nil {
		known = s.base.Pieces
	}
	if err := p.hashPieces(p.ctx, fd, there, known); err != nil {
		return pathError("compare", s.path, err)
	}
	p.planContent(s, e, ordinal, adjust, differ(e, there))
	return nil
}
