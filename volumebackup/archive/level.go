//go:build linux

package archive

import "golang.org/x/sys/unix"

// openLevels is how many directories a walk keeps open: a tree may be deeper than a process may have files open.
const openLevels = 100

// level is a directory that a walk is in.
type level struct {
	fd     int // -1 while it is closed
	device uint64
	inode  uint64
	length int // of its path
}

// enter goes into a directory. It closes the one far above until the walk comes back.
func (w *walker) enter(fd int, st *unix.Stat_t) {
	w.levels = append(w.levels, level{fd: fd, device: st.Dev, inode: st.Ino, length: len(w.path)})
	if far := len(w.levels) - 1 - openLevels; far >= 0 {
		closeFD(w.levels[far].fd)
		w.levels[far].fd = -1
	}
}

// leave goes back from the directory that was entered last, and opens the one above it if it is closed. If that is
// not there any more, it stays closed.
func (w *walker) leave() error {
	left := w.levels[len(w.levels)-1]
	defer closeFD(left.fd)
	w.levels = w.levels[:len(w.levels)-1]
	if len(w.levels) == 0 {
		return nil
	}
	above := &w.levels[len(w.levels)-1]
	if above.fd >= 0 {
		return nil
	}
	var err error
	if left.fd >= 0 {
		above.fd, err = openAt(left.fd, "..", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	}
	if above.isOpen(err) {
		return nil
	}
	// It was moved, or what was in it.
	above.fd, err = w.tree.open(string(w.path[:above.length]), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if above.isOpen(err) || err == nil || vanished(err) {
		return nil
	}
	return w.failed("open the directory above", err)
}

// isOpen says that a level is open again, and still the same directory; if it is another one, isOpen closes it.
func (l *level) isOpen(err error) bool {
	if err != nil || l.fd < 0 {
		l.fd = -1
		return false
	}
	var st unix.Stat_t
	if unix.Fstat(l.fd, &st) == nil && st.Dev == l.device && st.Ino == l.inode {
		return true
	}
	closeFD(l.fd)
	l.fd = -1
	return false
}

func (w *walker) closeLevels() {
	for _, l := range w.levels {
		if l.fd >= 0 {
			closeFD(l.fd)
		}
	}
	w.levels = nil
}
