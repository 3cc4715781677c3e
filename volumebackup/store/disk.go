//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// disk has every function that changes something on disk, so that tests can make the n-th change fail.
type disk struct {
	// fault, if set, is called before each change. If it returns an error, the change fails with it.
	fault func(op, path string) error
}

func (d *disk) may(op, path string) error {
	if d.fault == nil {
		return nil
	}
	if err := d.fault(op, path); err != nil {
		return fmt.Errorf("%s %s: %w", op, path, err)
	}
	return nil
}

// file is a file that is being written.
type file struct {
	*os.File
	disk *disk
}

func (d *disk) create(path string) (*file, error) {
	if err := d.may("create", path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d}, nil
}

// Write writes all of b. A fault leaves half of it, as a full disk would.
func (f *file) Write(b []byte) (int, error) {
	if err := f.disk.may("write", f.Name()); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

// WriteAt writes all of b at an offset. A fault leaves what was there.
func (f *file) WriteAt(b []byte, offset int64) (int, error) {
	if err := f.disk.may("write", f.Name()); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, offset)
}

func (f *file) Sync() error {
	if err := f.disk.may("sync", f.Name()); err != nil {
		return err
	}
	return f.File.Sync()
}

func (d *disk) mkdir(path string) error {
	if err := d.may("mkdir", path); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func (d *disk) rename(from, to string) error {
	if err := d.may("rename", from); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// publish renames a directory to a name that must be free.
func (d *disk) publish(from, to string) error {
	if err := d.may("rename", from); err != nil {
		return err
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the filesystem does not know the flag
		return os.Rename(from, to) // which replaces nothing but an empty directory
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// place gives a file its name, which must be free. It also works on filesystems that cannot link.
func (d *disk) place(from, to string) error {
	err := d.link(from, to)
	if !errors.Is(err, os.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err = d.may("move", from); err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	}
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := d.create(to)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func (d *disk) link(from, to string) error {
	if err := d.may("link", to); err != nil {
		return err
	}
	return os.Link(from, to)
}

// remove removes a file or an empty directory, if it is there.
func (d *disk) remove(path string) error {
	if err := d.may("remove", path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *disk) removeAll(path string) error {
	if err := d.may("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func (d *disk) syncDir(path string) error {
	if err := d.may("sync", path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFile makes a file durable that was written before.
func (d *disk) syncFile(path string) error {
	return d.syncDir(path)
}

// write writes a small file, without syncing it.
func (d *disk) write(path string, content []byte) error {
	f, err := d.create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.remove(path))
	}
	return nil
}

// replace writes a small file so that it is whole at any instant.
func (d *disk) replace(path, temporary string, content []byte) (err error) {
	f, err := d.create(temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = d.rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, d.remove(temporary))
	}
	return d.syncDir(filepath.Dir(path))
}

// zero makes a part of a file read as zeros, and frees it where whole blocks of
// the filesystem allow that.
func (d *disk) zero(f *os.File, part manifest.Range) error {
	if err := d.may("punch", f.Name()); err != nil {
		return err
	}
	// The kernel frees the blocks that are inside of the range and clears the rest of it.
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, part.Offset, part.Length)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // the space stays taken until the whole pack goes
	}
	if err != nil {
		return &os.PathError{Op: "punch", Path: f.Name(), Err: err}
	}
	return nil
}
