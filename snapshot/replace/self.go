package replace

import "github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"

// checkSelf refuses to stop the container that a program with these mounts runs in.
func (r *replacement) checkSelf(mounts []byte) error {
	if r.Old != nil && dockerop.RunsIn(mounts, r.Old.ID) {
		return &dockerop.SelfError{Container: dockerop.ContainerName(*r.Old), Stop: true}
	}
	for _, o := range r.Others {
		if dockerop.RunsIn(mounts, o.ID) {
			return &dockerop.SelfError{Container: o.Name, Stop: true}
		}
	}
	return nil
}
