package catalog

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// FindByKey returns the snapshot of a container that was taken for an idempotency key, or nil.
func (cat *Catalog) FindByKey(ctx context.Context, container, key string) (*Snapshot, error) {
	images, err := cat.docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("reference", Repository(container)), filters.Arg("label", labels.KeyIdempotencyKey+"="+key),
	)})
	if err != nil {
		return nil, fmt.Errorf("look for a snapshot of the same key: %w", err)
	}
	for _, summary := range images {
		s, err := decode(summary.ID, summary.RepoTags, summary.Labels)
		if err == nil && s.Container.Name == container && s.IdempotencyKey == key {
			return &s, nil
		}
	}
	return nil, nil //nolint:nilnil // none is no error
}
