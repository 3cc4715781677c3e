package catalog

import (
	"context"
	"fmt"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// LastOfUsage returns the newest snapshot of a container or line that was taken because usage had reached
// a threshold: of those of a run, if one is named. It returns nil if there is none.
func (cat *Catalog) LastOfUsage(ctx context.Context, container, runID string) (*Snapshot, error) {
	images, err := cat.docker.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("reference", Repository(container)), filters.Arg("label", labels.KeyTrigger+"="+string(labels.TriggerThreshold)),
	)})
	if err != nil {
		return nil, fmt.Errorf("look for the last snapshot of a threshold: %w", err)
	}
	var last *Snapshot
	for _, summary := range images {
		s, err := decode(summary.ID, summary.RepoTags, summary.Labels)
		if err != nil || s.Usage == nil || s.Container.Name != container || runID != "" && s.RunID != runID {
			continue
		}
		if last == nil || newestFirst(s, *last) < 0 {
			last = &s
		}
	}
	return last, nil
}
