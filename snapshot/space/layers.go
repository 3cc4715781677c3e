package space

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// layers finds out what the writable layers of snapshots occupy as images. A layer is held by the
// snapshot itself, and by those of containers that ran from it.
//
// What a layer occupies is the difference between the sizes that the engine tells of the image and
// of the one below it. With overlay2 that is the layer's files. With the containerd image store it
// is the files and the compressed content that the engine keeps beside them. If the image below is
// gone, it is what the engine said of the container's writable layer when the snapshot was taken.
// The layer of an image that was flattened holds all files, and counts as if it held what was new.
func layers(all []catalog.Snapshot, sizes map[string]int64) []retention.Set {
	above := standing(all)
	var sets []retention.Set
	for i, s := range all {
		bytes := s.Size
		if below, known := sizes[s.Container.ImageID]; known {
			bytes = max(0, sizes[s.ImageID]-below)
		}
		sets = append(sets, retention.Set{Rest: retention.NoRest, Snapshot: i})
		for _, other := range standingOn(all[i].Images(), all, above) {
			if other != i {
				sets = append(sets, retention.Set{Rest: len(sets) - 1, Snapshot: other})
			}
		}
		sets[len(sets)-1].Bytes = bytes
	}
	return sets
}

// Base is an image that is no snapshot, on which snapshots stand.
type Base struct {
	Bytes     int64
	IsThere   bool  // the engine lists it: it stays when the snapshots go
	Snapshots []int // those that stand on it
}

// bases finds the images on which the lowest layers of snapshots stand. What a base occupies that the
// engine does not list any more is what the image above has beyond its own layer.
func bases(all []catalog.Snapshot, sizes map[string]int64) []Base {
	ours := map[string]bool{}
	for _, s := range all {
		for _, id := range s.Images() {
			ours[id] = true
		}
	}
	above, seen := standing(all), map[string]bool{}
	var found []Base
	for _, s := range all {
		id := s.Container.ImageID
		if id == "" || ours[id] || seen[id] {
			continue
		}
		seen[id] = true
		bytes, isThere := sizes[id]
		if !isThere {
			bytes = max(0, sizes[s.ImageID]-s.Size)
		}
		found = append(found, Base{Bytes: bytes, IsThere: isThere, Snapshots: standingOn([]string{id}, all, above)})
	}
	return found
}

// standing lists, by image, the snapshots of containers that ran from it.
func standing(all []catalog.Snapshot) map[string][]int {
	above := map[string][]int{}
	for i, s := range all {
		above[s.Container.ImageID] = append(above[s.Container.ImageID], i)
	}
	return above
}

// standingOn returns the snapshots that stand on one of the images, directly or on each other.
func standingOn(images []string, all []catalog.Snapshot, above map[string][]int) (found []int) {
	seen := map[int]bool{}
	for next := images; len(next) > 0; next = next[1:] {
		for _, i := range above[next[0]] {
			if !seen[i] {
				seen[i] = true
				found, next = append(found, i), append(next, all[i].Images()...) // also the former ones, from before it was annotated
			}
		}
	}
	return found
}
