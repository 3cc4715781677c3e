//go:build !windows

package commands

import "syscall"

// ownSession keeps signals for a process's terminal and group away from another.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
