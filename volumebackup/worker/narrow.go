//go:build linux && !cgo

package worker

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	access "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// changing are all ways in which files and directories are made, written and removed. Reading is not among them: a worker sees
// nothing but what is mounted for it.
const changing landlock.AccessFSSet = access.AccessFSWriteFile | access.AccessFSTruncate | access.AccessFSRemoveDir | access.AccessFSRemoveFile |
	access.AccessFSMakeChar | access.AccessFSMakeDir | access.AccessFSMakeReg | access.AccessFSMakeSock | access.AccessFSMakeFifo |
	access.AccessFSMakeBlock | access.AccessFSMakeSym | access.AccessFSRefer

// narrow takes from the process, for good, the right to change anything but volumes, and in the store what a restore records there.
// So whatever an archive makes the worker do, it harms no other archive. A kernel without Landlock, before 5.19 or one that was
// built without it, and an engine that does not let the worker ask for it, leave it as it is.
func narrow(o Options) error {
	rules := landlock.PathAccess(changing, append(store.Recorded(o.StoreRoot), o.MountRoot)...).IgnoreIfMissing()
	config := landlock.Config{HandledAccessFS: changing}
	if err := config.BestEffort().RestrictPaths(rules); err != nil {
		return fmt.Errorf("keep the store from being changed: %w", err)
	}
	return nil
}
