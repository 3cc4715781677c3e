package untar

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	xattrKey = "SCHILY.xattr."

	permissions = 0o777
	setuid      = 0o4000
	setgid      = 0o2000
	sticky      = 0o1000
)

// setAttributes sets all but the time of a file or directory that is open. at is the name that it is for.
func (u *unpacking) setAttributes(f *os.File, h *tar.Header, at string) error {
	if u.isRoot() {
		if err := f.Chown(h.Uid, h.Gid); err != nil {
			u.warn(at, fmt.Sprintf("owner %d:%d: %v", h.Uid, h.Gid, reason(err)))
		}
	}
	for _, name := range xattrsOf(h) {
		if err := setXattr(f, name, h.PAXRecords[xattrKey+name]); err != nil {
			u.warn(at, fmt.Sprintf("xattr %q: %v", name, err))
		}
	}
	return f.Chmod(u.mode(h))
}

// setSpecialAttributes sets those of an entry that cannot be opened.
func (u *unpacking) setSpecialAttributes(dir *os.File, name string, h *tar.Header, at string) error {
	if u.isRoot() {
		if err := chownAt(dir, name, h.Uid, h.Gid); err != nil {
			u.warn(at, fmt.Sprintf("owner %d:%d: %v", h.Uid, h.Gid, err))
		}
	}
	for _, x := range xattrsOf(h) {
		if err := setXattrAt(dir, name, x, h.PAXRecords[xattrKey+x]); err != nil {
			u.warn(at, fmt.Sprintf("xattr %q: %v", x, err))
		}
	}
	if h.Typeflag != tar.TypeSymlink {
		if err := chmodAt(dir, name, u.mode(h)); err != nil {
			return err
		}
	}
	if err := setTimeAt(dir, name, h.ModTime); err != nil {
		u.warn(at, fmt.Sprintf("time: %v", err))
	}
	return nil
}

// setTimes sets when an entry was changed last. Go's Chtimes counts nanoseconds in 64 bits, which end in the year 2262.
func (u *unpacking) setTimes(h *tar.Header, at string) error {
	if time.Unix(0, h.ModTime.UnixNano()).Equal(h.ModTime) {
		return u.root.Chtimes(at, time.Time{}, h.ModTime)
	}
	dir, err := u.root.Open(path.Dir(at))
	if err != nil {
		return err
	}
	return errors.Join(setTimeAt(dir, path.Base(at), h.ModTime), dir.Close())
}

// mode is what an entry may be used for. The bits that lend its owner's rights are only for the owner that they were meant
// for.
func (u *unpacking) mode(h *tar.Header) fs.FileMode {
	mode := fs.FileMode(h.Mode & permissions)
	if h.Mode&sticky != 0 {
		mode |= fs.ModeSticky
	}
	if h.Mode&setuid != 0 && (u.isRoot() || h.Uid == u.user) {
		mode |= fs.ModeSetuid
	}
	if h.Mode&setgid != 0 && (u.isRoot() || h.Typeflag == tar.TypeDir) {
		mode |= fs.ModeSetgid
	}
	return mode
}

// xattrsOf lists the names of the extended attributes that an entry has.
func xattrsOf(h *tar.Header) []string {
	var names []string
	for key := range h.PAXRecords {
		if name, is := strings.CutPrefix(key, xattrKey); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
