package manifest

import (
	"encoding/binary"
	"slices"
)

// appendContent encodes what the root commits to.
func appendContent(b []byte, e *Entry) []byte {
	b = append(b, byte(e.Kind))
	b = appendText(b, e.Path)
	if e.Kind == HardLink {
		return appendText(b, e.Target)
	}
	b = binary.AppendUvarint(b, uint64(e.Mode))
	b = binary.AppendUvarint(b, uint64(e.UID))
	b = binary.AppendUvarint(b, uint64(e.GID))
	b = appendTimestamp(b, e.Modified)
	b = appendFlag(b, e.Shared)
	b = binary.AppendUvarint(b, uint64(len(e.Xattrs)))
	for _, x := range e.Xattrs {
		b = appendText(b, x.Name)
		b = appendText(b, x.Value)
	}
	switch e.Kind {
	case Regular:
		b = appendExtents(b, e)
	case Symlink:
		b = appendText(b, e.Target)
	case BlockDevice, CharacterDevice:
		b = binary.AppendUvarint(b, uint64(e.Major))
		b = binary.AppendUvarint(b, uint64(e.Minor))
	default:
	}
	return b
}

func appendExtents(b []byte, e *Entry) []byte {
	b = binary.AppendUvarint(b, uint64(e.Size))
	b = binary.AppendUvarint(b, uint64(len(e.Holes)))
	var end int64
	for _, h := range e.Holes {
		b = binary.AppendUvarint(b, uint64(h.Offset-end))
		b = binary.AppendUvarint(b, uint64(h.Length))
		end = h.Offset + h.Length
	}
	b = binary.AppendUvarint(b, uint64(len(e.Pieces)))
	end = 0
	for i := range e.Pieces {
		p := &e.Pieces[i]
		b = binary.AppendUvarint(b, uint64(p.Offset-end))
		b = binary.AppendUvarint(b, uint64(p.Length))
		b = append(b, p.Sum[:]...)
		end = p.End()
	}
	return b
}

// appendLocator encodes where things are; place gives a pack its place in the
// table, counted from one, and zero to none.
func appendLocator(b []byte, e *Entry, place func(PackID) uint64) []byte {
	if e.Kind == HardLink {
		return b
	}
	for i := range e.Pieces {
		at := e.Pieces[i].At
		b = binary.AppendUvarint(b, place(at.Pack))
		b = append(b, byte(at.Codec))
		b = binary.AppendUvarint(b, uint64(at.Offset))
		b = binary.AppendUvarint(b, uint64(at.Stored))
	}
	b = binary.AppendUvarint(b, e.Cached.Inode)
	b = appendTimestamp(b, e.Cached.Changed)
	return appendCached(b, e)
}

// The flags of a locator.
const (
	flagUnsettled    = 1
	flagFingerprints = 2
)

func appendCached(b []byte, e *Entry) []byte {
	var flags byte
	if e.Cached.Unsettled {
		flags |= flagUnsettled
	}
	if !slices.ContainsFunc(e.Pieces, func(p Piece) bool { return p.Fingerprint != 0 }) {
		return append(b, flags)
	}
	b = append(b, flags|flagFingerprints)
	for i := range e.Pieces {
		b = binary.BigEndian.AppendUint64(b, uint64(e.Pieces[i].Fingerprint))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendTimestamp(b []byte, t Timestamp) []byte {
	b = binary.AppendVarint(b, t.Sec)
	return binary.AppendUvarint(b, uint64(t.Nsec))
}

func appendFlag(b []byte, set bool) []byte {
	if set {
		return append(b, 1)
	}
	return append(b, 0)
}
