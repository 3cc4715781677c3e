package replace

import "github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"

// checkSelf refuses to stop the container that a program with these mounts runs in.
func (g *group) checkSelf(mounts []byte) error {
	for _, m := range g.members {
		if m.Old != nil && dockerop.RunsIn(mounts, m.Old.ID) {
			return &dockerop.SelfError{Container: dockerop.ContainerName(*m.Old), Stop: true}
		}
	}
	if pr := g.promoted(); pr != nil && dockerop.RunsIn(mounts, pr.container.ID) {
		return &dockerop.SelfError{Container: dockerop.ContainerName(pr.container), Stop: true}
	}
	for _, o := range g.others {
		if dockerop.RunsIn(mounts, o.ID) {
			return &dockerop.SelfError{Container: o.Name, Stop: true}
		}
	}
	return nil
}
