//go:build linux

package archive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// setRootStat copies the attributes that an export has: times to the second.
func setRootStat(e *manifest.Entry, st *unix.Stat_t) {
	setStat(e, st)
	e.Modified.Nsec = 0
	e.Shared = false // the list finds out which names there are
}

// isKnownRoot tells whether an entry is what an earlier walk has described. That has noted the inode only of what may be
// believed.
func isKnownRoot(known, e *manifest.Entry) bool {
	return known != nil && known.Kind == e.Kind && known.Cached.Inode != 0 &&
		known.Cached.Inode == e.Cached.Inode && known.Cached.Changed == e.Cached.Changed && known.Modified == e.Modified &&
		known.Size == e.Size && known.Mode == e.Mode && known.UID == e.UID && known.GID == e.GID &&
		known.Major == e.Major && known.Minor == e.Minor
}

// capabilities is the one xattr that an engine exports.
const capabilities = "security.capability"

// How the kernel writes down capabilities of files: the last byte of the first number is the revision. The third has the
// root of a user namespace at its end, which an engine leaves away.
const (
	revisionAt          = 3
	revisionWithoutUser = 2
	revisionOfUser      = 3
	lengthWithoutUser   = 20
)

// exportedXattrs reads the xattrs that an export has.
func exportedXattrs(of xattrCalls) ([]manifest.Xattr, error) {
	value, err := grow(func(b []byte) (int, error) { return of.get(capabilities, b) })
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(value) > lengthWithoutUser && value[revisionAt] == revisionOfUser {
		value = value[:lengthWithoutUser]
		value[revisionAt] = revisionWithoutUser
	}
	return []manifest.Xattr{{Name: capabilities, Value: string(value)}}, nil
}

// rootBuffer is how much of a file is read at a time.
const rootBuffer = 256 << 10

// sumPiece finds the sum of a piece of a file, without keeping the whole piece in memory. It is shorter if the file ends.
func sumPiece(fd int, offset, length int64, buffer []byte) (manifest.Piece, error) {
	hash := sha256.New()
	read := int64(0)
	for read < length {
		want := buffer[:min(int64(len(buffer)), length-read)]
		n, err := readFull(fd, want, offset+read)
		if err != nil {
			return manifest.Piece{}, err
		}
		hash.Write(want[:n])
		read += int64(n)
		if n < len(want) {
			break
		}
	}
	return manifest.Piece{Offset: offset, Length: uint32(read), Sum: manifest.Sum(hash.Sum(nil))}, nil
}

// knownRoot reads a list that an earlier walk has written, in step with a walk.
type knownRoot struct {
	reader *manifest.Reader // nil: it is over
	next   *manifest.Entry
}

// openKnownRoot opens a list. A list that is damaged is not believed at all, so it is read to its end first.
func openKnownRoot(content []byte) (*knownRoot, error) {
	if len(content) == 0 {
		return &knownRoot{}, nil
	}
	open := func() (*manifest.Reader, error) {
		return manifest.NewCacheReader(bytes.NewReader(content), int64(len(content)), manifest.NewPackTable())
	}
	reader, err := open()
	if err != nil {
		return &knownRoot{}, nil // then everything is read
	}
	defer reader.Close()
	for {
		if _, err = reader.Next(); err != nil {
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		return &knownRoot{}, nil // then everything is read
	}
	k := &knownRoot{}
	if k.reader, err = open(); err != nil {
		return nil, fmt.Errorf("read list of root filesystem: %w", err)
	}
	return k, nil
}

// seek returns the entry that has a path, or nil. It is asked in the order of a walk.
func (k *knownRoot) seek(path string) (*manifest.Entry, error) {
	for k.reader != nil {
		if k.next == nil {
			e, err := k.reader.Next()
			if errors.Is(err, io.EOF) {
				k.close()
				return nil, nil //nolint:nilnil // that there is none is no error
			}
			if err != nil {
				return nil, fmt.Errorf("read list of root filesystem: %w", err)
			}
			k.next = e
		}
		order := manifest.Compare(k.next.Path, path)
		if order > 0 {
			return nil, nil //nolint:nilnil // that there is none is no error
		}
		e := k.next
		k.next = nil
		if order == 0 {
			return e, nil
		}
	}
	return nil, nil //nolint:nilnil // that there is none is no error
}

func (k *knownRoot) close() {
	if k.reader != nil {
		k.reader.Close()
	}
	k.reader = nil
}
