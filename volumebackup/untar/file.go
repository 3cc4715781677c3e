package untar

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// file makes an entry that is no directory. If something has its name, the entry takes its place when it is whole.
func (u *unpacking) file(h *tar.Header, at string) error {
	info, err := u.root.Lstat(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && info.IsDir() {
		return &DestinationError{u.shown(at), "a file cannot take the place of a directory"}
	}
	if h.Typeflag == tar.TypeLink {
		return u.link(h, at, err == nil)
	}
	made := at
	if err == nil {
		made = path.Join(path.Dir(at), ".cp-"+rand.Text())
	}
	if isMade, err := u.make(h, made, at); err != nil || !isMade {
		return errors.Join(err, u.takeAway(made))
	}
	if made == at {
		return nil
	}
	if err := u.root.Rename(made, at); err != nil {
		return errors.Join(err, u.takeAway(made))
	}
	return nil
}

// takeAway removes what is not whole.
func (u *unpacking) takeAway(made string) error {
	if err := u.root.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// make makes an entry under a name that is free. at is the name that it is for. It returns false if the system does not
// allow such an entry.
func (u *unpacking) make(h *tar.Header, made, at string) (bool, error) {
	switch h.Typeflag {
	case tar.TypeReg:
		return true, u.regular(h, made, at)
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, made); err != nil {
			return false, err
		}
	case tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
		err := u.inDirectory(made, func(dir *os.File, name string) error { return makeNode(dir, name, h) })
		if isForbidden(err) {
			u.warn(at, fmt.Sprintf("left out: a special file cannot be made here: %v", reason(err)))
			return false, nil
		}
		if err != nil {
			return false, err
		}
	default:
		u.warn(at, fmt.Sprintf("left out: an entry of type %q is unknown", h.Typeflag))
		return false, nil
	}
	return true, u.inDirectory(made, func(dir *os.File, name string) error { return u.setSpecialAttributes(dir, name, h, at) })
}

// inDirectory runs f with the directory that holds an entry, and its name there.
func (u *unpacking) inDirectory(at string, f func(dir *os.File, name string) error) error {
	dir, err := u.root.Open(path.Dir(at))
	if err != nil {
		return err
	}
	return errors.Join(f(dir, path.Base(at)), dir.Close())
}

// link makes a further name of an entry that was made.
func (u *unpacking) link(h *tar.Header, at string, isThere bool) error {
	first, err := clean(h.Linkname)
	if err != nil {
		return err
	}
	target, err := u.locate(first)
	if err != nil {
		return err
	}
	if isThere && target != at {
		if err := u.root.Remove(at); err != nil {
			return err
		}
	}
	err = u.root.Link(target, at)
	if errors.Is(err, fs.ErrNotExist) {
		u.warn(at, fmt.Sprintf("left out: it is a further name of %s, which was left out", u.shown(target)))
		return nil
	}
	return err
}

func (u *unpacking) regular(h *tar.Header, made, at string) error {
	const private = 0o600 // until it is whole
	f, err := u.root.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_WRONLY, private)
	if err != nil {
		return err
	}
	err = u.fill(f, h)
	if err == nil {
		err = u.setAttributes(f, h, at)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return u.setTimes(h, made)
}

const (
	chunkSize = 256 << 10
	pageSize  = 4096
)

// fill writes the content of a file. Of a file that is sparse in the tar, pages of zeros stay holes.
func (u *unpacking) fill(f *os.File, h *tar.Header) error {
	write := func(b []byte, _ int64) error {
		_, err := f.Write(b)
		return err
	}
	if isSparse(h) {
		if err := f.Truncate(h.Size); err != nil {
			return err
		}
		write = func(b []byte, at int64) error { return writeSparse(f, b, at) }
	}
	buffer := make([]byte, min(h.Size, chunkSize))
	for at := int64(0); at < h.Size; {
		if err := u.over(); err != nil {
			return err
		}
		b := buffer[:min(h.Size-at, chunkSize)]
		if _, err := io.ReadFull(u.tar, b); err != nil {
			return fmt.Errorf("unpack tar: %w", err)
		}
		if err := write(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// isSparse tells whether a tar leaves out parts of a file.
func isSparse(h *tar.Header) bool {
	return h.Typeflag == tar.TypeGNUSparse || h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != ""
}

var zeroPage [pageSize]byte

// writeSparse writes the pages that are not all zeros.
func writeSparse(f *os.File, b []byte, at int64) error {
	for len(b) > 0 {
		n := min(len(b), pageSize)
		if !bytes.Equal(b[:n], zeroPage[:n]) {
			if _, err := f.WriteAt(b[:n], at); err != nil {
				return err
			}
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}
