//go:build unix

package commands

import (
	"errors"

	"golang.org/x/sys/unix"
)

// outputGone tells whether nobody reads our standard output or error any more. A broken
// connection to the engine makes the kernel send the same signal, SIGPIPE.
func outputGone() bool {
	const stdout, stderr = 1, 2
	descriptors := []unix.PollFd{{Fd: stdout}, {Fd: stderr}}
	for {
		_, err := unix.Poll(descriptors, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return false
		}
	}
	const broken = unix.POLLERR | unix.POLLHUP
	return (descriptors[0].Revents|descriptors[1].Revents)&broken != 0
}
