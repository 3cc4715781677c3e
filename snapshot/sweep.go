package snapshot

import (
	"context"
	"errors"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// orphanAge is how old an unfinished image must be before it is taken for one
// that nobody will finish.
const orphanAge = time.Hour

// comment marks the image that a commit makes. Unlike labels it is not passed
// on to images that are built FROM it.
func comment(id labels.ID) string { return "docker snapshot " + string(id) }

// sweep removes what nobody will finish: images of ours without a tag, and the
// containers that making a flat image needs, if they are old. A client that made
// them was killed. Removing is not a hot path, so it is done there.
func (e *Engine) sweep(ctx context.Context, engine engineInfo, p Progress) {
	now, err := engine.now()
	if err == nil {
		err = errors.Join(e.sweepScratch(ctx, now), e.sweepImages(ctx, now))
	}
	if err != nil {
		p.warn("sweep", "what interrupted commands have left could not be removed: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func (e *Engine) sweepScratch(ctx context.Context, now time.Time) error {
	scratch, err := e.docker.ContainerList(ctx, container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("name", scratchPrefix), filters.Arg("label", labels.KeyVersion)),
	})
	for _, c := range scratch {
		if isOld(c.Created, now) && strings.HasPrefix(summaryName(c), scratchPrefix) {
			err = errors.Join(err, e.removeContainer(ctx, c.ID))
		}
	}
	return err
}

func (e *Engine) sweepImages(ctx context.Context, now time.Time) error {
	untagged, err := e.docker.ImageList(ctx, image.ListOptions{
		Filters: filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", labels.KeyVersion)),
	})
	for _, summary := range untagged {
		if isOld(summary.Created, now) {
			err = errors.Join(err, e.removeOrphan(ctx, summary.ID))
		}
	}
	return err
}

// isOld tells whether what was made at that Unix time is taken for an orphan. Both
// times are the engine's.
func isOld(created int64, now time.Time) bool { return now.Sub(time.Unix(created, 0)) >= orphanAge }

func (e *Engine) removeOrphan(ctx context.Context, id string) error {
	found, err := e.docker.ImageInspect(ctx, id)
	if err != nil || len(found.RepoTags) > 0 || found.Config == nil {
		return err
	}
	if found.Comment != comment(labels.ID(found.Config.Labels[labels.KeyID])) {
		return nil // somebody's image that was built FROM a snapshot
	}
	_, err = e.docker.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true})
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return nil // a container lives on it, or somebody else was faster
	}
	return err
}
