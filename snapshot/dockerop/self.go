package dockerop

import (
	"bytes"
	"os"
	"strings"
)

// SelfError is returned if a container would have to be frozen or stopped that this program
// runs in. Frozen, nobody would be left to thaw it.
type SelfError struct {
	Container string
	Stop      bool // instead of freezing it
}

func (e *SelfError) Error() string {
	act := "freeze"
	if e.Stop {
		act = "stop"
	}
	return act + " container " + e.Container + ": this program runs in it"
}

// OwnMounts returns what the kernel says of this program's mounts. It returns nothing on systems
// that cannot tell.
func OwnMounts() []byte {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return mounts
}

// RunsIn tells whether a program with these mounts runs in the container. An engine binds a few
// files into every container, from a directory whose name is the container's ID. A program on the
// host sees mounts in that directory, but none from it.
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
