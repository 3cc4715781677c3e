package capture

import (
	"slices"

	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// As has the snapshot of one container recorded as that of another, whose place the captured one is going to take.
type As struct {
	Container labels.Container
	Config    labels.Config
	Mounts    []labels.Mount // of the other container
}

// skippedNoMount is why a mount has no archive in a snapshot that is recorded as another container's.
const skippedNoMount = "what was captured mounts no volume there"

// Place returns the mounts of the other container with the archives of what the captured one mounts in the same places.
func (as *As) Place(captured []labels.Mount) []labels.Mount {
	placed := slices.Clone(as.Mounts)
	for i := range placed {
		m := &placed[i]
		if m.Type != string(mount.TypeVolume) {
			continue
		}
		m.Archive, m.Skipped = nil, skippedNoMount
		at := slices.IndexFunc(captured, func(c labels.Mount) bool { return c.Destination == m.Destination && c.Type == string(mount.TypeVolume) })
		if at >= 0 {
			m.Archive, m.Skipped = captured[at].Archive, captured[at].Skipped
		}
	}
	return placed
}

// describe changes what is recorded, but for the mounts: these are still to be read.
func (as *As) describe(r *labels.Record) {
	if as != nil {
		r.Container, r.Config = as.Container, as.Config
	}
}
