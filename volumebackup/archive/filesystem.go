//go:build linux

package archive

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// writeback says how to make later writes through a mapping move a file's times.
type writeback int

const (
	// syncData waits until the file is durable; it works everywhere.
	syncData writeback = iota
	// syncPages only writes dirty pages back.
	syncPages
	// never: the filesystem has nowhere to write pages back to.
	never
)

// Magic numbers that x/sys does not have.
const (
	ramfsMagic     = 0x858458f6
	hugetlbfsMagic = 0x958458f6
)

// writebackOf tells by the type of the filesystem.
func writebackOf(fd int) (writeback, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return never, fmt.Errorf("stat filesystem: %w", err)
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return syncPages, nil
	case unix.TMPFS_MAGIC, ramfsMagic, hugetlbfsMagic:
		return never, nil
	default:
		return syncData, nil
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
