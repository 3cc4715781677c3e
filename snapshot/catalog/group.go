package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// TakenWith returns the snapshots of other containers that were taken at the same moment as s, in its group, sorted by container. A
// group that a user names may also have snapshots of other moments.
func (cat *Catalog) TakenWith(ctx context.Context, s Snapshot) ([]Snapshot, error) {
	if s.Group == "" {
		return nil, nil
	}
	images, err := cat.imagesLabelled(ctx, Namespace+"*", labels.KeyGroup, s.Group)
	if err != nil {
		return nil, fmt.Errorf("look for the snapshots of group %s: %w", s.Group, err)
	}
	all, _ := decodeAll(images)
	others := slices.DeleteFunc(all, func(other Snapshot) bool {
		return other.Container.Name == s.Container.Name || other.Kind != s.Kind || !other.Created.Equal(s.Created)
	})
	slices.SortFunc(others, func(a, b Snapshot) int { return cmp.Compare(a.Container.Name, b.Container.Name) })
	return others, nil
}
