//go:build linux

package archive

import (
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// TestUnknownFilesystemsAreNeverSettled expects that only those are believed of which it is known
// that a write through a mapping moves the times of the file.
func TestUnknownFilesystemsAreNeverSettled(t *testing.T) {
	for filesystem, want := range map[uint32]writeback{
		unix.EXT4_SUPER_MAGIC: syncPages, unix.XFS_SUPER_MAGIC: syncPages, unix.BTRFS_SUPER_MAGIC: syncPages,
		unix.F2FS_SUPER_MAGIC: syncPages, bcachefsMagic: syncData, jfsMagic: syncData,
		unix.TMPFS_MAGIC: never, unix.NFS_SUPER_MAGIC: never, unix.FUSE_SUPER_MAGIC: never, unix.CIFS_SUPER_MAGIC: never,
		unix.V9FS_MAGIC: never, unix.CEPH_SUPER_MAGIC: never, unix.OVERLAYFS_SUPER_MAGIC: never,
		0x2fc12fc1: never, 0x12345678: never, // ZFS, and one that nobody has heard of
	} {
		assert.Equal(t, writebackFor(filesystem), want, "%#x", filesystem)
	}
}
