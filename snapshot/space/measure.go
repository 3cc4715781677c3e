// Package space finds out what snapshots occupy on an engine, in images and in stores, and for whom.
package space

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// Scale measures what snapshots occupy.
type Scale struct {
	docker   *dockerop.Engine
	archives *archives.Archives
}

// New returns a scale.
func New(docker *dockerop.Engine, stored *archives.Archives) *Scale {
	return &Scale{docker: docker, archives: stored}
}

// Measured is what snapshots occupy. Sets name the snapshots by their places in the list that was measured.
type Measured struct {
	Layers []retention.Set // in images
	Pieces []retention.Set // in stores
	Bases  []Base
	Stores []archives.Holding
}

// Sets are those of layers and of stores together.
func (m Measured) Sets() []retention.Set {
	all := append([]retention.Set(nil), m.Layers...)
	for _, set := range m.Pieces {
		if set.Rest >= 0 {
			set.Rest += len(m.Layers)
		}
		all = append(all, set)
	}
	return all
}

// Measure finds out what the snapshots occupy, alone and together: in images, and in stores.
func (s *Scale) Measure(ctx context.Context, all []catalog.Snapshot, p plan.Progress) (m Measured, err error) {
	sizes, err := s.imageSizes(ctx)
	if err != nil {
		return Measured{}, err
	}
	m.Layers, m.Bases = layers(all, sizes), bases(all, sizes)
	if m.Stores, err = s.archives.Usage(ctx, all, p); err != nil {
		return Measured{}, err
	}
	places := map[string]int{} // of snapshots, by image
	for i, s := range all {
		places[s.ImageID] = i
	}
	for _, store := range m.Stores {
		m.Pieces = append(m.Pieces, setsOf(store, places, len(m.Pieces))...)
	}
	return m, nil
}

// Layers finds out what the snapshots occupy in images alone.
func (s *Scale) Layers(ctx context.Context, all []catalog.Snapshot) ([]retention.Set, error) {
	sizes, err := s.imageSizes(ctx)
	return layers(all, sizes), err
}

// imageSizes returns what the engine says of the sizes of all images, by ID.
func (s *Scale) imageSizes(ctx context.Context) (map[string]int64, error) {
	images, err := s.docker.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	sizes := map[string]int64{}
	for _, one := range images {
		sizes[one.ID] = one.Size
	}
	return sizes, nil
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
