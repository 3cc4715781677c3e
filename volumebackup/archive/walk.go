//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// found is an entry that a walk visits. It is valid during the visit only.
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

// walkReadable is a walk that goes on where something may not be read, and tells of it. content says that it is a
// directory: the walk visits the directory itself, but nothing in it.
func (t *tree) walkReadable(ctx context.Context, visit func(*found) error, unreadable func(path string, content bool)) error {
	w := walker{tree: t, ctx: ctx, visit: visit, unreadable: unreadable, buffer: make([]byte, 64<<10)}
	defer w.closeLevels()
	root := found{dir: t.fd(), name: ".", stat: t.stat}
	if err := unix.Fstat(t.fd(), &root.stat); err != nil {
		return fmt.Errorf("stat volume: %w", err)
	}
	err := visit(&root)
	if errors.Is(err, errLeaveOut) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.descend(&root)
}

// errLeaveOut is what a visit returns so that the walk does not go into a directory.
var errLeaveOut = errors.New("leave out what is in it")

// walker holds one path and a bounded number of open directories, however deep it is.
type walker struct {
	tree       *tree
	ctx        context.Context //nolint:containedctx // a walk is one call
	visit      func(*found) error
	unreadable func(path string, content bool) // nil if that is an error
	buffer     []byte
	path       []byte  // of the entry that is visited
	levels     []level // the directories above it
}

// skips says whether the walk goes on after an error, and tells of what is left out.
func (w *walker) skips(err error, content bool) bool {
	if vanished(err) {
		return len(w.path) > 0 // without its root there is no volume
	}
	if w.unreadable == nil || !denied(err) {
		return false
	}
	w.unreadable(string(w.path), content)
	return true
}

// directory visits what is in the directory that was entered last.
func (w *walker) directory() error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	names, err := w.names(w.levels[len(w.levels)-1].fd)
	if denied(err) && w.skips(err, true) {
		return nil
	}
	if err != nil {
		return w.failed("read directory", err)
	}
	length := len(w.path)
	for _, name := range names {
		w.path = w.path[:length]
		if length > 0 {
			w.path = append(w.path, '/')
		}
		w.path = append(w.path, name...)
		isThere, err := w.entry(name)
		if err != nil {
			return err
		}
		if !isThere {
			break
		}
	}
	w.path = w.path[:length]
	return nil
}

// entry visits an entry of the directory that was entered last, and what is in it. It returns
// false if that directory is gone.
func (w *walker) entry(name string) (bool, error) {
	f := found{dir: w.levels[len(w.levels)-1].fd, name: name}
	if err := unix.Fstatat(f.dir, f.name, &f.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if w.skips(err, false) {
			return true, nil
		}
		return false, w.failed("stat", err)
	}
	isDir := f.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	f.mount = f.stat.Dev != w.tree.stat.Dev || isDir && isMount(f.dir, f.name)
	f.path = string(w.path)
	err := w.visit(&f)
	isLeftOut := errors.Is(err, errLeaveOut)
	if err != nil && !isLeftOut {
		return false, err
	}
	if !isDir || f.mount || isLeftOut {
		return true, nil
	}
	f.path = "" // or every level would hold its own
	if err := w.descend(&f); err != nil {
		return false, err
	}
	return w.levels[len(w.levels)-1].fd >= 0, nil
}

// descend visits what is in a directory.
func (w *walker) descend(f *found) error {
	fd, err := openAt(f.dir, f.name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		if w.skips(err, true) {
			return nil
		}
		return w.failed("open", err)
	}
	w.enter(fd, &f.stat)
	if err := w.directory(); err != nil {
		return err
	}
	return w.leave()
}

func (w *walker) failed(op string, err error) error { return pathError(op, string(w.path), err) }

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
