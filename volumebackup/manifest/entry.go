package manifest

import "crypto/sha256"

// Kind is what an entry is.
type Kind byte

// The kinds.
const (
	Directory       Kind = 'd'
	Regular         Kind = 'f'
	Symlink         Kind = 'l'
	FIFO            Kind = 'p'
	Socket          Kind = 's'
	BlockDevice     Kind = 'b'
	CharacterDevice Kind = 'c'
	HardLink        Kind = 'h' // a further name of an entry that came before
)

// Sum is a SHA-256.
type Sum [sha256.Size]byte

// Timestamp is a time as the kernel keeps it, with the range it has there.
type Timestamp struct {
	Sec  int64
	Nsec uint32
}

// Range is a part of a file.
type Range struct{ Offset, Length int64 }

// Xattr is an extended attribute.
type Xattr struct{ Name, Value string }

// Codec says how a piece is stored.
type Codec byte

// The codecs.
const (
	Raw  Codec = 0
	Zstd Codec = 1
)

// Location is where a piece is stored.
type Location struct {
	Pack   PackID
	Codec  Codec
	Stored uint32
	Offset int64
}

// Piece is a run of a file's bytes.
type Piece struct {
	Offset      int64
	Length      uint32
	Sum         Sum
	At          Location
	Fingerprint Fingerprint // of a block of a large file; zero: not known
}

// End is the offset after the piece.
func (p *Piece) End() int64 { return p.Offset + int64(p.Length) }

// Attributes are what every entry but a further name has.
type Attributes struct {
	Mode     uint32 // permissions, setuid, setgid, sticky
	UID, GID uint32
	Modified Timestamp
	Xattrs   []Xattr // sorted by name
}

// Cached is what the kernel said of an entry when it was recorded.
type Cached struct {
	Inode   uint64
	Changed Timestamp
	// Unsettled means that the file may have changed although its times are the same.
	Unsettled bool
}

// Entry is one name in a volume.
type Entry struct {
	// Path is relative to the root of the volume, whose own path is empty.
	Path string
	Kind Kind
	Attributes
	// Shared says that further names of this file follow.
	Shared bool
	// Target is where a symlink points, or the first name of a file.
	Target       string
	Major, Minor uint32
	Size         int64
	Holes        []Range
	Pieces       []Piece
	Cached       Cached
}
