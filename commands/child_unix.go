//go:build !windows

package commands

import (
	"os"
	"syscall"
)

// signalOf returns the number of the signal that ended a process, or 0.
func signalOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return int(status.Signal())
	}
	return 0
}
