//go:build linux

package archive

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// setAttributes sets owner, mode, xattrs and times, in this order: a change of owner clears setuid and capabilities.
// fd is the file if it is open, else -1. It reports what the kernel does not allow, and goes on.
func (a *applier) setAttributes(dir int, name string, fd int, e *manifest.Entry, isNew bool) error {
	plain := isNew && a.isPlain()
	if !plain || e.UID != a.uid || e.GID != a.gid {
		if err := unix.Fchownat(dir, name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if !forbidden(err) {
				return fmt.Errorf("set owner: %w", err)
			}
			a.skip(e.Path, fmt.Sprintf("owner %d:%d", e.UID, e.GID), err)
		}
		plain = false
	}
	if e.Kind != manifest.Symlink && (!plain || fd < 0 || a.firstMode(e) != e.Mode) {
		if err := setMode(dir, name, fd, e.Mode); err != nil {
			if !forbidden(err) {
				return fmt.Errorf("set mode: %w", err)
			}
			a.skip(e.Path, fmt.Sprintf("mode %o", e.Mode), err)
		}
	}
	if len(e.Xattrs) > 0 || !isNew || !a.isPlain() {
		if err := a.setXattrs(dir, name, e); err != nil {
			return err
		}
	}
	return setTimes(dir, name, e)
}

func setMode(dir int, name string, fd int, mode uint32) error {
	if fd >= 0 {
		return unix.Fchmod(fd, mode)
	}
	return unix.Fchmodat(dir, name, mode, 0) // not a symlink: it was just made or looked at
}

func setTimes(dir int, name string, e *manifest.Entry) error {
	times := []unix.Timespec{
		{Nsec: unix.UTIME_OMIT},
		{Sec: e.Modified.Sec, Nsec: int64(e.Modified.Nsec)},
	}
	if err := unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	return nil
}

// setXattrs gives an entry the xattrs that it should have, and removes all others.
func (a *applier) setXattrs(dir int, name string, e *manifest.Entry) error {
	there, err := readXattrs(pathXattrs(dir, name))
	if err != nil {
		return fmt.Errorf("read xattrs: %w", err)
	}
	path := procPath(dir, name)
	for _, x := range there {
		if slices.ContainsFunc(e.Xattrs, func(want manifest.Xattr) bool { return want.Name == x.Name }) {
			continue
		}
		if err := unix.Lremovexattr(path, x.Name); err != nil && !errors.Is(err, unix.ENODATA) {
			if !forbidden(err) {
				return fmt.Errorf("remove xattr %s: %w", x.Name, err)
			}
			a.skip(e.Path, "remove xattr "+x.Name, err)
		}
	}
	for _, x := range e.Xattrs {
		if slices.Contains(there, x) {
			continue
		}
		if err := unix.Lsetxattr(path, x.Name, []byte(x.Value), 0); err != nil {
			if !forbidden(err) {
				return fmt.Errorf("set xattr %s: %w", x.Name, err)
			}
			a.skip(e.Path, "xattr "+x.Name, err)
		}
	}
	return nil
}
