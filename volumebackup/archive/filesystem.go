//go:build linux

package archive

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// writeback says how to make later writes through a mapping move a file's times.
type writeback int

const (
	// syncData waits until the file is durable.
	syncData writeback = iota
	// syncPages only writes dirty pages back.
	syncPages
	// never: nothing does. The filesystem has nowhere to write pages back to, or it leaves times to
	// a server, or is not known. Its files are read every time.
	never
)

// Magic numbers that x/sys does not have.
const (
	bcachefsMagic = 0xca451a4e
	jfsMagic      = 0x3153464a
)

// writebackOf tells by the type of the filesystem.
func writebackOf(fd int) (writeback, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return never, fmt.Errorf("stat filesystem: %w", err)
	}
	return writebackFor(uint32(st.Type)), nil
}

// writebackFor lists the filesystems whose fault handlers are known to move a file's times when a
// clean page is written to through a mapping. NFS, CIFS, 9p, Ceph and FUSE leave the times to the other
// side, ZFS moves them when it writes the page, and an overlay does what its upper layer does, which it does not tell.
func writebackFor(filesystem uint32) writeback {
	switch filesystem {
	case unix.EXT4_SUPER_MAGIC /* ext2 and ext3, too */, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return syncPages
	case bcachefsMagic, jfsMagic, unix.NILFS_SUPER_MAGIC, unix.REISERFS_SUPER_MAGIC:
		return syncData
	default:
		return never
	}
}

// settle takes the write permission from mapped pages of a file.
func (w writeback) settle(fd int) error {
	switch w {
	case syncPages:
		return unix.SyncFileRange(fd, 0, 0,
			unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
	case syncData:
		return unix.Fdatasync(fd)
	case never:
		return nil
	default:
		return nil
	}
}
