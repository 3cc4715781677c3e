package untar

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errNotDirectory is the error of a path that goes on behind a file.
var errNotDirectory error = unix.ENOTDIR

// isForbidden tells whether the system or the filesystem does not allow something here.
func isForbidden(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL)
}

// nodeTypes are the types of special files.
var nodeTypes = map[byte]uint32{tar.TypeFifo: unix.S_IFIFO, tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK}

// makeNode makes a special file.
func makeNode(dir *os.File, name string, h *tar.Header) error {
	const private = 0o600
	device := unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor))
	return unix.Mknodat(int(dir.Fd()), name, nodeTypes[h.Typeflag]|private, int(device))
}

func chownAt(dir *os.File, name string, uid, gid int) error {
	return unix.Fchownat(int(dir.Fd()), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}

// chmodAt changes the mode of a special file. The kernel cannot do that without following a symlink, so the file is opened
// for nothing else first.
func chmodAt(dir *os.File, name string, mode fs.FileMode) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode), unix.Close(fd))
}

func setTimeAt(dir *os.File, name string, modified time.Time) error {
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{
		{Nsec: unix.UTIME_OMIT}, {Sec: modified.Unix(), Nsec: int64(modified.Nanosecond())},
	}, unix.AT_SYMLINK_NOFOLLOW)
}

func setXattr(f *os.File, name, value string) error {
	return unix.Fsetxattr(int(f.Fd()), name, []byte(value), 0)
}

func setXattrAt(dir *os.File, name, attribute, value string) error {
	return unix.Lsetxattr(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name), attribute, []byte(value), 0)
}
