//go:build !windows

package commands

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner of the one that it replaces, as far as this user may.
func keepOwner(path string, replaced os.FileInfo) {
	if owner, ok := replaced.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(path, int(owner.Uid), int(owner.Gid))
	}
}
