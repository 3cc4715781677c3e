package dockerop

import (
	"bytes"
	"os"
	"strings"
)

// OwnMounts is what the kernel says of this program's mounts; nothing where there
// is no such thing.
func OwnMounts() []byte {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return mounts
}

// RunsIn tells whether a program with these mounts is in a container. Engines bind
// a few files in each from a directory that bears its ID. On the host there are
// mounts in that directory, but none from it.
func RunsIn(mounts []byte, containerID string) bool {
	const root, point = 3, 4 // fields of mountinfo: see proc(5)
	for line := range bytes.Lines(mounts) {
		fields := strings.Fields(string(line))
		if len(fields) <= point {
			continue
		}
		switch fields[point] {
		case "/etc/hostname", "/etc/hosts", "/etc/resolv.conf":
			if strings.Contains(fields[root], "/containers/"+containerID+"/") {
				return true
			}
		}
	}
	return false
}
