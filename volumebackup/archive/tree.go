//go:build linux

package archive

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// maxLookup is the longest path that is handed to the kernel at once; its own
// limit is 4096.
const maxLookup = 4000

// tree is a directory beneath which paths are resolved. It follows no symlink and crosses no mount, whatever changes
// meanwhile.
type tree struct {
	root *os.File
	stat unix.Stat_t
	// modern says that the kernel has openat2 and lets us call it.
	modern bool
}

func openTree(path string) (*tree, error) {
	root, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) { // a volume always is one, a bind mount may be a file
		return nil, fmt.Errorf("it is not a directory, and only directories are captured and restored: %w", errdefs.ErrInvalidArgument)
	}
	if err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	t := &tree{root: root}
	if err := unix.Fstat(t.fd(), &t.stat); err != nil {
		return nil, errors.Join(fmt.Errorf("open volume: %w", err), root.Close())
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH}
	if fd, err := unix.Openat2(t.fd(), ".", &how); err == nil {
		t.modern = true
		closeFD(fd)
	}
	return t, nil
}

func (t *tree) fd() int { return int(t.root.Fd()) }

func (t *tree) close() error { return t.root.Close() }

// openFile opens a file to read it.
func (t *tree) openFile(path string) (int, error) {
	return t.open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
}

// open opens an entry beneath the root. The root itself has the path "".
func (t *tree) open(path string, flags int, mode uint32) (int, error) {
	if path == "" {
		return openAt(t.fd(), ".", flags, mode)
	}
	return t.openFrom(t.fd(), path, flags, mode)
}

// openFrom opens an entry beneath a directory.
func (t *tree) openFrom(dir int, path string, flags int, mode uint32) (int, error) {
	at := dir
	for len(path) > maxLookup {
		cut := strings.LastIndexByte(path[:maxLookup], '/')
		next, err := t.lookup(at, path[:cut], unix.O_PATH|unix.O_DIRECTORY, 0)
		if at != dir {
			closeFD(at)
		}
		if err != nil {
			return -1, err
		}
		at, path = next, path[cut+1:]
	}
	fd, err := t.lookup(at, path, flags, mode)
	if at != dir {
		closeFD(at)
	}
	return fd, err
}

func (t *tree) lookup(at int, path string, flags int, mode uint32) (int, error) {
	if !t.modern {
		return t.lookupSlowly(at, path, flags, mode)
	}
	how := unix.OpenHow{
		Flags: uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC), Mode: uint64(mode),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for {
		fd, err := unix.Openat2(at, path, &how)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return fd, err
		}
	}
}

// lookupSlowly does what openat2 does, one component at a time.
func (t *tree) lookupSlowly(at int, path string, flags int, mode uint32) (int, error) {
	start := at
	for {
		name, rest, more := strings.Cut(path, "/")
		if name == "" || name == "." || name == ".." {
			return -1, unix.EXDEV
		}
		var fd int
		var err error
		if more {
			fd, err = openAt(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		} else {
			fd, err = openAt(at, name, flags, mode)
		}
		if at != start {
			closeFD(at)
		}
		if err != nil {
			return -1, err
		}
		if err := t.sameDevice(fd); err != nil {
			closeFD(fd)
			return -1, err
		}
		if !more {
			return fd, nil
		}
		at, path = fd, rest
	}
}

func (t *tree) sameDevice(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Dev != t.stat.Dev {
		return unix.EXDEV
	}
	return nil
}

// openAt opens one component.
func openAt(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func closeFD(fd int) { _ = unix.Close(fd) }

// procPath names an entry for the calls that know no directory descriptors.
func procPath(dir int, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name
}

// vanished says that an entry went away or was replaced while it was looked at.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) ||
		errors.Is(err, unix.ENXIO) // a socket or a device is there now
}

// denied says that we may not read an entry. That happens where root cannot do everything: on a remapped or rootless
// engine, and on NFS.
func denied(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }

// pathError gives an error of the kernel its operation and path.
func pathError(op, path string, err error) error {
	return &os.PathError{Op: op, Path: path, Err: err}
}
