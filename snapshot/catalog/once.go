package catalog

import (
	"context"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// FindByKey returns the snapshot of a container that was taken for an idempotency key, or nil.
func (cat *Catalog) FindByKey(ctx context.Context, container, key string) (*Snapshot, error) {
	images, err := cat.imagesLabelled(ctx, Repository(container), labels.KeyIdempotencyKey, key)
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
