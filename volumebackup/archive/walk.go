//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// found is an entry as a walk comes by. It is valid during the visit only.
type found struct {
	path string
	dir  int    // the directory that holds it
	name string // in dir; "." for the root
	stat unix.Stat_t
	// mount says that another filesystem, or another part of this one, begins here.
	mount bool
}

// walk visits every entry in the order of a manifest, without crossing mounts.
// What vanishes meanwhile is left out. What may not be read is an error.
func (t *tree) walk(ctx context.Context, visit func(*found) error) error {
	return t.walkReadable(ctx, visit, nil)
}

// walkReadable is a walk that goes on where something may not be read, and tells of it: content
// says that it is a directory, which is visited but for what is in it.
func (t *tree) walkReadable(ctx context.Context, visit func(*found) error, unreadable func(path string, content bool)) error {
	w := walker{tree: t, ctx: ctx, visit: visit, unreadable: unreadable, buffer: make([]byte, 64<<10)}
	root := found{dir: t.fd(), name: ".", stat: t.stat}
	if err := unix.Fstat(t.fd(), &root.stat); err != nil {
		return fmt.Errorf("stat volume: %w", err)
	}
	if err := visit(&root); err != nil {
		return err
	}
	return w.descend(&root)
}

type walker struct {
	tree       *tree
	ctx        context.Context //nolint:containedctx // a walk is one call
	visit      func(*found) error
	unreadable func(path string, content bool) // nil if that is an error
	buffer     []byte
}

// skips says whether the walk goes on after an error, and tells of what is left out.
func (w *walker) skips(err error, path string, content bool) bool {
	if vanished(err) {
		return path != "" // without its root there is no volume
	}
	if w.unreadable == nil || !denied(err) {
		return false
	}
	w.unreadable(path, content)
	return true
}

func (w *walker) directory(fd int, path string) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	names, err := w.names(fd)
	if denied(err) && w.skips(err, path, true) {
		return nil
	}
	if err != nil {
		return pathError("read directory", path, err)
	}
	prefix := path
	if prefix != "" {
		prefix += "/"
	}
	f := found{dir: fd}
	for _, name := range names {
		f.path, f.name = prefix+name, name
		if err := w.entry(&f); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(f *found) error {
	if err := unix.Fstatat(f.dir, f.name, &f.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if w.skips(err, f.path, false) {
			return nil
		}
		return pathError("stat", f.path, err)
	}
	isDir := f.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	f.mount = f.stat.Dev != w.tree.stat.Dev || isDir && isMount(f.dir, f.name)
	if err := w.visit(f); err != nil {
		return err
	}
	if !isDir || f.mount {
		return nil
	}
	return w.descend(f)
}

// descend visits what is in a directory.
func (w *walker) descend(f *found) error {
	fd, err := openAt(f.dir, f.name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		if w.skips(err, f.path, true) {
			return nil
		}
		return pathError("open", f.path, err)
	}
	defer closeFD(fd)
	return w.directory(fd, f.path)
}

// isMount finds mounts that have the same device number, as bind mounts may.
func isMount(dir int, name string) bool {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// names lists a directory in order.
func (w *walker) names(fd int) ([]string, error) {
	var names []string
	for {
		n, err := unix.ReadDirent(fd, w.buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOENT) { // removed meanwhile
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(w.buffer[:n], -1, names)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
