//go:build linux

package archive

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// kindOf says what an entry is; false if it is nothing that can be archived.
func kindOf(mode uint32) (manifest.Kind, bool) {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return manifest.Directory, true
	case unix.S_IFREG:
		return manifest.Regular, true
	case unix.S_IFLNK:
		return manifest.Symlink, true
	case unix.S_IFIFO:
		return manifest.FIFO, true
	case unix.S_IFSOCK:
		return manifest.Socket, true
	case unix.S_IFBLK:
		return manifest.BlockDevice, true
	case unix.S_IFCHR:
		return manifest.CharacterDevice, true
	default:
		return 0, false
	}
}

func timestamp(t unix.Timespec) manifest.Timestamp {
	return manifest.Timestamp{Sec: int64(t.Sec), Nsec: uint32(t.Nsec)} //nolint:unconvert // narrower on 32 bits
}

// setStat copies the attributes that stat returns.
func setStat(e *manifest.Entry, st *unix.Stat_t) {
	e.Mode = st.Mode & 0o7777
	e.UID, e.GID = st.Uid, st.Gid
	e.Modified = timestamp(st.Mtim)
	e.Cached.Inode = st.Ino
	e.Cached.Changed = timestamp(st.Ctim)
	if e.Kind == manifest.Regular {
		e.Size = st.Size
	}
	if e.Kind == manifest.BlockDevice || e.Kind == manifest.CharacterDevice {
		e.Major, e.Minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
	}
	e.Shared = isShared(e.Kind, st)
}

// isClean says that an entry is what was recorded, without reading it.
func isClean(e *manifest.Entry, kind manifest.Kind, st *unix.Stat_t) bool {
	return e != nil && e.Kind == kind && !e.Cached.Unsettled &&
		e.Cached.Inode == st.Ino && e.Cached.Changed == timestamp(st.Ctim) && e.Modified == timestamp(st.Mtim) &&
		(kind != manifest.Regular || e.Size == st.Size) && e.Shared == isShared(kind, st)
}

// isShared says that an entry has further names.
func isShared(kind manifest.Kind, st *unix.Stat_t) bool {
	return kind != manifest.Directory && st.Nlink > 1
}

// skippedXattr is the attribute that belongs to the host, not to the data.
const skippedXattr = "security.selinux"

// xattrCalls are what the kernel offers to read extended attributes of something.
type xattrCalls struct {
	list func([]byte) (int, error)
	get  func(name string, b []byte) (int, error)
}

// pathXattrs are those of an entry, symlinks not followed.
func pathXattrs(dir int, name string) xattrCalls {
	path := procPath(dir, name)
	return xattrCalls{
		list: func(b []byte) (int, error) { return unix.Llistxattr(path, b) },
		get:  func(name string, b []byte) (int, error) { return unix.Lgetxattr(path, name, b) },
	}
}

// fileXattrs are those of an open file.
func fileXattrs(fd int) xattrCalls {
	return xattrCalls{
		list: func(b []byte) (int, error) { return unix.Flistxattr(fd, b) },
		get:  func(name string, b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) },
	}
}

// readXattrs reads extended attributes.
func readXattrs(of xattrCalls) ([]manifest.Xattr, error) {
	names, err := grow(of.list)
	if errors.Is(err, unix.ENOTSUP) || len(names) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var xattrs []manifest.Xattr
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if name == skippedXattr {
			continue
		}
		value, err := grow(func(b []byte) (int, error) { return of.get(name, b) })
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) { // gone meanwhile, or only for show
			continue
		}
		if err != nil {
			return nil, err
		}
		xattrs = append(xattrs, manifest.Xattr{Name: name, Value: string(value)})
	}
	slices.SortFunc(xattrs, func(a, b manifest.Xattr) int { return strings.Compare(a.Name, b.Name) })
	return xattrs, nil
}

// grow calls a function of the kernel until its buffer is large enough.
func grow(call func([]byte) (int, error)) ([]byte, error) {
	var small [256]byte
	n, err := call(small[:])
	if err == nil {
		return slices.Clone(small[:n]), nil
	}
	for size := 4 << 10; errors.Is(err, unix.ERANGE) && size <= 128<<10; size *= 4 {
		b := make([]byte, size)
		if n, err = call(b); err == nil {
			return b[:n], nil
		}
	}
	return nil, err
}

// readLink reads where a symlink points. If the entry is not a symlink any more, the error is the one for an entry
// that vanished.
func readLink(dir int, name string) (string, error) {
	for size := 256; ; size *= 4 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, b)
		if errors.Is(err, unix.EINVAL) {
			return "", unix.ESTALE
		}
		if err != nil {
			return "", err
		}
		if n < size {
			return string(b[:n]), nil
		}
	}
}
