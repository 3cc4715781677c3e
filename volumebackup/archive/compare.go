//go:build linux

package archive

import (
	"context"
	"crypto/sha256"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// seen is an entry of the volume, as far as the plan needs it.
type seen struct {
	path   string
	kind   store.Kind
	stat   unix.Stat_t
	xattrs []store.Xattr
	target string
	// known says that base tells what the file holds.
	known bool
	base  *store.Entry
}

// see looks at an entry; what the head knows is not read.
func (p *planner) see(f *found, base *store.Entry) (*seen, error) {
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
	if kind == store.Symlink {
		if s.target, err = readLink(f.dir, f.name); err != nil {
			return nil, pathError("read symlink", f.path, err)
		}
	}
	return s, nil
}

// canBecome says that the entry can be made right without being replaced.
func (s *seen) canBecome(e *store.Entry) bool {
	if s.kind != e.Kind {
		return false
	}
	switch e.Kind {
	case store.Symlink:
		return s.target == e.Target
	case store.BlockDevice, store.CharacterDevice:
		return e.Major == unix.Major(s.stat.Rdev) && e.Minor == unix.Minor(s.stat.Rdev)
	default:
		return true
	}
}

func (s *seen) sameAttributes(e *store.Entry) bool {
	return s.stat.Mode&0o7777 == e.Mode && s.stat.Uid == e.UID && s.stat.Gid == e.GID &&
		timestamp(s.stat.Mtim) == e.Modified && slices.Equal(s.xattrs, e.Xattrs)
}

// difference says in what a file differs from what it should be.
type difference struct {
	pieces []int32
	holes  bool
}

// differ compares with a file of which the pieces are known.
func differ(e, there *store.Entry) difference {
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
func overlaps(holes []store.Range, p *store.Piece) bool {
	return slices.ContainsFunc(holes, func(h store.Range) bool {
		return h.Offset < p.End() && h.Offset+h.Length > p.Offset
	})
}

// compare reads a file of the volume to find out what differs.
func (p *planner) compare(s *seen, e *store.Entry, ordinal int64, adjust bool) error {
	fd, err := p.tree.openFile(s.path)
	if err != nil {
		return pathError("compare", s.path, err)
	}
	defer closeFD(fd)
	there := &store.Entry{Size: s.stat.Size}
	if err := layout(fd, there, isSparse(&s.stat)); err != nil {
		return pathError("compare", s.path, err)
	}
	var known []store.Piece
	if s.base != nil {
		known = s.base.Pieces
	}
	if err := p.hashPieces(p.ctx, fd, there, known); err != nil {
		return pathError("compare", s.path, err)
	}
	p.planContent(s, e, ordinal, adjust, differ(e, there))
	return nil
}

// hashPieces finds out what the pieces of a file are. Those that the head knows are known again by their prints.
func (p *planner) hashPieces(ctx context.Context, fd int, e *store.Entry, known []store.Piece) error {
	buffer := make([]byte, min(e.Size, pieceLength(e.Size)))
	for i := range e.Pieces {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		piece := &e.Pieces[i]
		n, err := readFull(fd, buffer[:piece.Length], piece.Offset)
		if err != nil {
			return err
		}
		p.counter.Bytes.Add(int64(n))
		piece.Length = uint32(n)
		if !p.isKnown(piece, buffer[:n], known, i) {
			piece.Sum = sha256.Sum256(buffer[:n])
		}
	}
	return nil
}

// isKnown takes the sum of a piece from the head if it has a piece with the same print at the same place.
func (p *planner) isKnown(piece *store.Piece, content []byte, known []store.Piece, n int) bool {
	if n >= len(known) || known[n].Print == 0 || p.printer == nil {
		return false
	}
	old := &known[n]
	if old.Offset != piece.Offset || old.Length != piece.Length || old.Print != p.printer.Print(content) {
		return false
	}
	piece.Sum = old.Sum
	return true
}
