package removal

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// tarOverhead is the most that a store needs for an entry besides its content.
const tarOverhead = 2 << 10

// mayExceed tells whether the snapshots may occupy more than the limit. Their labels say how much
// they hold, which is at least what they occupy. So usually nobody has to measure that.
func mayExceed(s retention.Situation) bool {
	most := s.Options.InAll().MaxSize
	if most == 0 {
		return false
	}
	total := int64(0)
	for _, one := range s.Snapshots {
		total += one.Size
		for _, m := range one.Mounts {
			if m.Archive != nil {
				total += m.Archive.Bytes + m.Archive.Entries*tarOverhead
			}
		}
	}
	return total > most
}

// freedLayers returns the bytes of the layers that are gone. An image that the engine still has is
// not: somebody else needs it, or has built on it.
func (rm *Remover) freedLayers(ctx context.Context, layers []retention.Set, victims []*Removal) int64 {
	gone := make([]bool, len(victims))
	for i, r := range victims {
		if r != nil && r.Err == nil {
			_, err := rm.docker.ImageInspect(ctx, r.Snapshot.ImageID)
			gone[i] = cerrdefs.IsNotFound(err)
		}
	}
	return retention.Freed(layers, gone)
}
