//go:build linux

package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
)

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

// PackID stands for a pack while a store is open; zero stands for none.
type PackID uint32

// Location is where a piece is stored.
type Location struct {
	Pack   PackID
	Codec  Codec
	Stored uint32
	Offset int64
}

// Piece is a run of a file's bytes.
type Piece struct {
	Offset int64
	Length uint32
	Sum    Sum
	At     Location
	Print  uint64 // of a block of a large file, see Printer; zero: not known
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
	// Unsettled means that the file may change without its times telling.
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

// Compare orders paths by component: a directory comes right before what is in it.
func Compare(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		return component(a[i]) - component(b[i])
	}
	return len(a) - len(b)
}

// component puts the separator before every other byte.
func component(c byte) int {
	if c == '/' {
		return 0
	}
	return int(c)
}

// Parent is the directory that holds path; that of a top-level entry is the root, "".
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// checkPath refuses what could lead outside of a volume.
func checkPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("path of %d bytes", len(path))
	}
	for c := range strings.SplitSeq(path, "/") {
		if c == "" || c == "." || c == ".." || len(c) > maxComponent || strings.IndexByte(c, 0) >= 0 {
			return fmt.Errorf("path %q is not clean", path)
		}
	}
	return nil
}

// order checks that entries come as the format says, whatever they were decoded from.
type order struct {
	last    string
	started bool
	parents []int // how long the paths are of the directories above and including the last entry, which begins with them
	seed    maphash.Seed
	shared  map[uint64]struct{} // the paths of files with several names, hashed with a key that nobody knows
}

// file is what stands for a path in shared.
func (o *order) file(path string) uint64 { return maphash.String(o.seed, path) }

// check takes the next entry. One that is refused changes nothing.
func (o *order) check(e *Entry) error {
	if !o.started {
		if e.Path != "" || e.Kind != Directory {
			return errors.New("the first entry is not the root")
		}
		o.started = true
		o.parents = append(o.parents, 0)
		o.seed, o.shared = maphash.MakeSeed(), map[uint64]struct{}{}
		return nil
	}
	if err := checkPath(e.Path); err != nil {
		return err
	}
	if Compare(o.last, e.Path) >= 0 {
		return fmt.Errorf("%q comes after %q", e.Path, o.last)
	}
	parent := Parent(e.Path)
	above := len(o.parents)
	for above > 0 && o.parents[above-1] > len(parent) {
		above--
	}
	if above == 0 || o.parents[above-1] != len(parent) || !strings.HasPrefix(o.last, parent) {
		return fmt.Errorf("%q is in no directory", e.Path)
	}
	if e.Kind == HardLink {
		if _, ok := o.shared[o.file(e.Target)]; !ok {
			return fmt.Errorf("%q is a further name of %q, which is no file before it", e.Path, e.Target)
		}
	}
	if e.Shared && len(o.shared) >= maxShared {
		return fmt.Errorf("there are more than %d files with several names: %w", maxShared, ErrUnfit)
	}
	o.last, o.parents = e.Path, o.parents[:above]
	if e.Kind == Directory {
		o.parents = append(o.parents, len(e.Path))
	}
	if e.Shared {
		o.shared[o.file(e.Path)] = struct{}{}
	}
	return nil
}
