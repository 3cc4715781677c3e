package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnfit means that the format cannot hold an entry.
var ErrUnfit = errors.New("an archive cannot hold it")

// check makes sure that an entry is within the limits of the format. Reader and Writer both call it, so that
// everything that was written can be read.
func check(e *Entry) error {
	if e.Kind == HardLink {
		return nil // order.check knows what it may point to
	}
	if e.Mode > 0o7777 || e.Modified.Nsec > maxNsec || e.Cached.Changed.Nsec > maxNsec {
		return errors.New("mode or times are impossible")
	}
	if err := checkXattrs(e.Xattrs); err != nil {
		return err
	}
	switch e.Kind {
	case Regular:
		return checkExtents(e)
	case Symlink:
		if e.Target == "" || len(e.Target) > maxTarget || strings.IndexByte(e.Target, 0) >= 0 {
			return fmt.Errorf("symlink to %.100q", e.Target)
		}
		return nil
	case Directory:
		if e.Shared {
			return errors.New("a directory has one name")
		}
		return nil
	case FIFO, Socket, BlockDevice, CharacterDevice:
		return nil
	default:
		return fmt.Errorf("kind %q is unknown", byte(e.Kind))
	}
}

func checkXattrs(xattrs []Xattr) error {
	if len(xattrs) > maxXattrs {
		return fmt.Errorf("%d xattrs", len(xattrs))
	}
	length := 0
	for i := range xattrs {
		x := &xattrs[i]
		length += len(x.Value)
		switch {
		case len(x.Name) > maxComponent || len(x.Value) > maxXattr:
			return fmt.Errorf("an xattr of %d bytes, %.100q", len(x.Value), x.Name)
		case length > maxXattrBytes:
			return fmt.Errorf("xattrs of more than %d bytes together", maxXattrBytes)
		case i > 0 && xattrs[i-1].Name >= x.Name:
			return errors.New("xattrs are not sorted")
		}
	}
	return nil
}

func checkExtents(e *Entry) error {
	if e.Size < 0 || len(e.Holes) > holeLimit(e.Size) || len(e.Pieces) > pieceLimit(e.Size) {
		return fmt.Errorf("%d holes and %d pieces in %d bytes", len(e.Holes), len(e.Pieces), e.Size)
	}
	end := int64(-1) // two holes in a row are one
	for _, h := range e.Holes {
		if h.Offset <= end || h.Length <= 0 || h.Length > e.Size-h.Offset {
			return errors.New("a hole is outside of its file, or not apart from the one before")
		}
		end = h.Offset + h.Length
	}
	end = 0
	for i := range e.Pieces {
		p := &e.Pieces[i]
		if p.Offset < end || p.Length == 0 || p.Length > MaxPiece || int64(p.Length) > e.Size-p.Offset {
			return errors.New("a piece is outside of its file")
		}
		end = p.End()
	}
	return checkCoverage(e)
}

// checkCoverage makes sure that what no piece holds is a hole.
func checkCoverage(e *Entry) error {
	var end int64
	holes := e.Holes
	covered := func(from, to int64) bool {
		for len(holes) > 0 && holes[0].Offset+holes[0].Length <= from {
			holes = holes[1:]
		}
		return from == to || len(holes) > 0 && holes[0].Offset <= from && holes[0].Offset+holes[0].Length >= to
	}
	for i := range e.Pieces {
		if !covered(end, e.Pieces[i].Offset) {
			return fmt.Errorf("bytes %d to %d are missing", end, e.Pieces[i].Offset)
		}
		end = e.Pieces[i].End()
	}
	if !covered(end, e.Size) {
		return fmt.Errorf("bytes %d to %d are missing", end, e.Size)
	}
	return nil
}
