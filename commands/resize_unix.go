//go:build !windows

package commands

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyResize sends something whenever the terminal's size changes.
func notifyResize(changed chan<- os.Signal) { signal.Notify(changed, syscall.SIGWINCH) }
