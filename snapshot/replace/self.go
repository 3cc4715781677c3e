package replace

import (
	"errors"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// errSelfStop means that stopping a container would end this program.
var errSelfStop = errors.New("this program runs in it: run it elsewhere")

// checkSelf refuses to stop the container that a program with these mounts runs in.
func (r *replacement) checkSelf(mounts []byte) error {
	if r.Old != nil && dockerop.RunsIn(mounts, r.Old.ID) {
		return fmt.Errorf("stop container %s: %w", dockerop.ContainerName(*r.Old), errSelfStop)
	}
	for _, o := range r.Others {
		if dockerop.RunsIn(mounts, o.ID) {
			return fmt.Errorf("stop container %s: %w", o.Name, errSelfStop)
		}
	}
	return nil
}
