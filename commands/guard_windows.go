package commands

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// ownSession keeps Ctrl-C and the end of a console away from another process.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}
