package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errTruncated = errors.New("record is cut short")

// decoder reads the fields of a record. It keeps the first error; every field after that is zero.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.rest = nil
}

func (d *decoder) number(limit uint64) uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail(errTruncated)
		return 0
	}
	if n > limit {
		d.fail(fmt.Errorf("number %d is over %d", n, limit))
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail(errTruncated)
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count reads the number of items, each of which takes at least size bytes.
func (d *decoder) count(size int) int {
	return int(d.number(uint64(len(d.rest) / size)))
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.fail(errTruncated)
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) text(limit uint64) string {
	return string(d.bytes(int(d.number(limit))))
}

func (d *decoder) octet() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) flag() bool {
	b := d.octet()
	if b > 1 {
		d.fail(fmt.Errorf("flags %#x are unknown", b))
	}
	return b == 1
}

func (d *decoder) timestamp() Timestamp {
	return Timestamp{Sec: d.signed(), Nsec: uint32(d.number(maxNsec))}
}

func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("%d bytes too many", len(d.rest))
	}
	return d.err
}

// decodeContent is the inverse of appendContent.
func decodeContent(content []byte) (*Entry, error) {
	d := decoder{rest: content}
	e := &Entry{Kind: Kind(d.octet()), Path: d.text(MaxPath)}
	if e.Kind == HardLink {
		e.Target = d.text(MaxPath)
		return e, d.end()
	}
	e.Mode = uint32(d.number(0o7777))
	e.UID = uint32(d.number(math.MaxUint32))
	e.GID = uint32(d.number(math.MaxUint32))
	e.Modified = d.timestamp()
	e.Shared = d.flag()
	d.xattrs(e)
	switch e.Kind {
	case Regular:
		d.extents(e)
	case Symlink:
		e.Target = d.text(maxTarget)
	case BlockDevice, CharacterDevice:
		e.Major = uint32(d.number(math.MaxUint32))
		e.Minor = uint32(d.number(math.MaxUint32))
	default:
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return e, check(e)
}

func (d *decoder) xattrs(e *Entry) {
	n := d.count(2)
	if n == 0 {
		return
	}
	if n > maxXattrs {
		d.fail(fmt.Errorf("%d xattrs", n))
		return
	}
	e.Xattrs = make([]Xattr, n)
	for i := range e.Xattrs {
		e.Xattrs[i] = Xattr{Name: d.text(maxComponent), Value: d.text(maxXattr)}
	}
}

// extents only reads; check looks at what it means. An offset that overflows is negative, so check finds it before
// its predecessor.
func (d *decoder) extents(e *Entry) {
	e.Size = int64(d.number(maxOffset))
	n := d.count(2)
	if n > holeLimit(e.Size) {
		d.fail(fmt.Errorf("%d holes in %d bytes", n, e.Size))
		return
	}
	if n > 0 {
		e.Holes = make([]Range, n)
	}
	var end int64
	for i := range e.Holes {
		h := &e.Holes[i]
		h.Offset, h.Length = end+int64(d.number(maxOffset)), int64(d.number(maxOffset))
		end = h.Offset + h.Length
	}
	n = d.count(2 + len(Sum{}))
	if n > pieceLimit(e.Size) {
		d.fail(fmt.Errorf("%d pieces in %d bytes", n, e.Size))
		return
	}
	if n > 0 {
		e.Pieces = make([]Piece, n)
	}
	end = 0
	for i := range e.Pieces {
		p := &e.Pieces[i]
		p.Offset, p.Length = end+int64(d.number(maxOffset)), uint32(d.number(MaxPiece))
		copy(p.Sum[:], d.bytes(len(p.Sum)))
		end = p.End()
	}
}

// decodeLocator is the inverse of appendLocator.
func decodeLocator(locator []byte, e *Entry, packs []PackID) error {
	d := decoder{rest: locator}
	if e.Kind == HardLink {
		return d.end()
	}
	for i := range e.Pieces {
		at := &e.Pieces[i].At
		place := d.number(uint64(len(packs)))
		at.Codec = Codec(d.octet())
		at.Offset = int64(d.number(math.MaxInt64))
		at.Stored = uint32(d.number(MaxPiece))
		if place == 0 {
			*at = Location{}
			continue
		}
		at.Pack = packs[place-1]
		if at.Codec > Zstd || at.Stored == 0 || at.Stored > e.Pieces[i].Length || at.Codec == Raw && at.Stored != e.Pieces[i].Length {
			d.fail(errors.New("the stored length of a piece is impossible"))
		}
	}
	e.Cached.Inode = d.number(math.MaxUint64)
	e.Cached.Changed = d.timestamp()
	d.cached(e)
	return d.end()
}

func (d *decoder) cached(e *Entry) {
	flags := d.octet()
	if flags > flagUnsettled|flagFingerprints {
		d.fail(fmt.Errorf("flags %#x are unknown", flags))
	}
	e.Cached.Unsettled = flags&flagUnsettled != 0
	if flags&flagFingerprints == 0 {
		return
	}
	for i := range e.Pieces {
		if b := d.bytes(8); b != nil {
			e.Pieces[i].Fingerprint = Fingerprint(binary.BigEndian.Uint64(b))
		}
	}
}
