package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// errSelf means that freezing a container would freeze this program, and whoever
// watches over it: nobody would be left to thaw it.
var errSelf = errors.New("this program runs in it: use --pause=none, or run it elsewhere")

// errSelfStop means that stopping a container would end this program.
var errSelfStop = errors.New("this program runs in it: run it elsewhere")

// ownMounts is what the kernel says of this program's mounts; nothing where there
// is no such thing.
func ownMounts() []byte {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return mounts
}

// runsIn tells whether a program with these mounts is in a container. Engines bind
// a few files in each from a directory that bears its ID. On the host there are
// mounts in that directory, but none from it.
func runsIn(mounts []byte, containerID string) bool {
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

// checkSelf refuses to stop the container that a program with these mounts runs in.
func (r *replacement) checkSelf(mounts []byte) error {
	if r.old != nil && runsIn(mounts, r.old.ID) {
		return fmt.Errorf("stop container %s: %w", dockerop.ContainerName(*r.old), errSelfStop)
	}
	for _, o := range r.others {
		if runsIn(mounts, o.ID) {
			return fmt.Errorf("stop container %s: %w", o.Name, errSelfStop)
		}
	}
	return nil
}
