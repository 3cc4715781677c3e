//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var errNotRegular = errors.New("it is no regular file")

// openRegular opens a file of the store that exists. Whoever can write to the store may have put something else
// there: openRegular follows no symlink, waits for no FIFO, and reads no device.
func openRegular(path string, flags int) (*os.File, error) {
	f, err := openPlain(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		err = &os.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openPlain opens a path none of whose components is a symlink, as far as the kernel can tell.
func openPlain(path string, flags int) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM): // an old kernel, or one that is told to be
			return os.OpenFile(path, flags, 0)
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// noRoom says that something failed because the store is full.
func noRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// damagedFile is the error for a file of the store that is not what it should be.
func damagedFile(name string, err error) error {
	if errors.Is(err, errNotRegular) {
		return &DamagedError{Pack: name, Offset: -1, Reason: errNotRegular.Error()}
	}
	return fmt.Errorf("open manifest: %w", err)
}
