package removal

import (
	"context"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
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

// measure finds out what the snapshots occupy, alone and together: in images, and in stores.
func (rm *Remover) measure(ctx context.Context, all []catalog.Snapshot) ([]retention.Set, error) {
	sets, err := rm.measureImages(ctx, all)
	if err != nil {
		return nil, err
	}
	held, err := rm.archives.Usage(ctx, all)
	if err != nil {
		return nil, err
	}
	places := map[string]int{} // of snapshots, by image
	for i, s := range all {
		places[s.ImageID] = i
	}
	for _, store := range held {
		sets = append(sets, setsOf(store, places, len(sets))...)
	}
	return sets, nil
}

// setsOf makes sets of what a store holds. They come behind before other sets.
func setsOf(store archives.Holding, places map[string]int, before int) []retention.Set {
	byID := map[labels.ID]int{}
	for _, s := range store.Snapshots {
		byID[s.ID] = places[s.ImageID]
	}
	var sets []retention.Set
	for i, held := range store.Sets {
		set := retention.Set{Rest: retention.NoRest, Snapshot: retention.Stranger, Bytes: held.Bytes}
		if held.Rest >= 0 && held.Rest < i {
			set.Rest = held.Rest + before
		}
		if held.Snapshot >= 0 && held.Snapshot < len(store.Usage.Snapshots) {
			if place, ours := byID[labels.ID(store.Usage.Snapshots[held.Snapshot].Snapshot)]; ours {
				set.Snapshot = place
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// measureImages finds out what the writable layers of snapshots occupy as images. A layer is held by
// the snapshot itself, and by those of containers that ran from it.
//
// What a layer occupies is the difference between the sizes that the engine tells of the image and
// of the one below it. With overlay2 that is the layer's files. With the containerd image store it
// is the files and the compressed content that the engine keeps beside them. If the image below is
// gone, it is what the engine said of the container's writable layer when the snapshot was taken.
// The layer of an image that was flattened holds all files, and counts as if it held what was new.
func (rm *Remover) measureImages(ctx context.Context, all []catalog.Snapshot) ([]retention.Set, error) {
	images, err := rm.docker.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	sizes := map[string]int64{}
	for _, one := range images {
		sizes[one.ID] = one.Size
	}
	above := map[string][]int{} // the snapshots of containers that ran from an image
	for i, s := range all {
		above[s.Container.ImageID] = append(above[s.Container.ImageID], i)
	}
	var sets []retention.Set
	for i, s := range all {
		bytes := s.Size
		if below, known := sizes[s.Container.ImageID]; known {
			bytes = max(0, sizes[s.ImageID]-below)
		}
		sets = append(sets, retention.Set{Rest: retention.NoRest, Snapshot: i})
		for _, other := range standingOn(i, all, above) {
			sets = append(sets, retention.Set{Rest: len(sets) - 1, Snapshot: other})
		}
		sets[len(sets)-1].Bytes = bytes
	}
	return sets, nil
}

// standingOn returns the snapshots that stand on a snapshot's layer.
func standingOn(base int, all []catalog.Snapshot, above map[string][]int) (found []int) {
	seen := map[int]bool{base: true}
	for next := []int{base}; len(next) > 0; next = next[1:] {
		for _, image := range all[next[0]].Images() { // also the former ones, from before it was annotated
			for _, i := range above[image] {
				if !seen[i] {
					seen[i] = true
					found, next = append(found, i), append(next, i)
				}
			}
		}
	}
	return found
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
