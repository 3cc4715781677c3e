//go:build linux

package archive

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	// granularity is more than a tick of the slowest kernel clock, which is
	// what file times are taken from.
	granularity = 20 * time.Millisecond

	// coarse is for filesystems that keep whole seconds, or two.
	coarse = 2 * time.Second

	// longestWrite is longer than any write is in flight. A file's times move when a write begins. The
	// bytes of a direct write land when the disk has them, those of a large buffered write as memory becomes
	// free for them. The kernel gives up on a request to a disk after 30 seconds by default, and then tries once more.
	longestWrite = time.Minute
)

// coarseNow reads the clock that file times come from.
func coarseNow() (unix.Timespec, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return now, fmt.Errorf("read clock: %w", err)
	}
	return now, nil
}

// isRecent says that the change time is so close to now that the next change might not move it.
func isRecent(changed manifest.Timestamp, now unix.Timespec) bool {
	step := granularity
	if changed.Nsec == 0 {
		step = coarse
	}
	return isYounger(changed, now, step)
}

// mayBeInFlight says that a write which began at the change time, and may take so long, may not have landed by now.
func mayBeInFlight(changed manifest.Timestamp, now unix.Timespec, longest time.Duration) bool {
	return isYounger(changed, now, longest)
}

// isYounger says that a change is younger than some age. A change time after now is from before the clock was set
// back: nobody knows its age, so it counts as young.
func isYounger(changed manifest.Timestamp, now unix.Timespec, than time.Duration) bool {
	seconds := int64(now.Sec) - changed.Sec  //nolint:unconvert // narrower on 32 bits
	if seconds > int64(than/time.Second)+1 { // a file may be older than a duration can be
		return false
	}
	age := time.Duration(seconds)*time.Second + time.Duration(now.Nsec) - time.Duration(changed.Nsec)
	return seconds < 0 || age <= than
}

// isClosedForWriting says that nobody has a file open for writing or mapped for writing. Then no write is in flight
// either: it would keep the file open. The kernel grants a read lease only then, to the file's owner and to processes
// with CAP_LEASE; isClosedForWriting gives it back at once. Whoever opens the file for writing in between waits, or
// fails if it does not want to wait. So only call this while no writer runs.
func isClosedForWriting(fd int) bool {
	for {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return err == nil
	}
}
