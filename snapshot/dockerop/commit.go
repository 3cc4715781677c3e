package dockerop

import (
	"context"
	"errors"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Commit makes an image of the container's filesystem, untagged, and returns
// its ID.
//
// An engine does not stop a commit because its client has gone. So a call that
// is cancelled is waited for, for as long as cleaning up may take, and what it
// made is removed.
func (e *Engine) Commit(ctx context.Context, id string, options container.CommitOptions) (string, error) {
	type result struct {
		image string
		err   error
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	done := make(chan result, 1)
	go func() {
		response, err := e.ContainerCommit(context.WithoutCancel(ctx), id, options)
		done <- result{response.ID, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && options.Reference == "" { // by its tag it would be found
			return "", errors.Join(r.err, e.removeUnansweredCommit(ctx, r.err, options))
		}
		return r.image, r.err
	case <-ctx.Done():
	}
	limit := time.NewTimer(CleanupTimeout)
	defer limit.Stop()
	select {
	case r := <-done:
		if r.err != nil {
			return "", context.Cause(ctx)
		}
		after, cancel := Cleanup(ctx)
		defer cancel()
		if err := e.RemoveImage(after, r.image); err != nil {
			return "", fmt.Errorf("remove unfinished image: %w", err)
		}
	case <-limit.C:
	}
	return "", context.Cause(ctx)
}

// removeUnansweredCommit removes the image that a commit has made although it
// failed: the connection may break before the answer comes. Its label has the ID of
// this snapshot, and it has no tag.
func (e *Engine) removeUnansweredCommit(ctx context.Context, failure error, options container.CommitOptions) error {
	id := options.Config.Labels[labels.KeyID]
	if cerrdefs.IsConflict(failure) || cerrdefs.IsNotFound(failure) || cerrdefs.IsInvalidArgument(failure) || id == "" {
		return nil // an answer
	}
	ctx, cancel := Cleanup(ctx)
	defer cancel()
	return insist(ctx, func(ctx context.Context) error {
		made, err := e.ImageList(ctx, image.ListOptions{
			Filters: filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", labels.KeyID+"="+id)),
		})
		for _, summary := range made {
			err = errors.Join(err, e.RemoveImage(ctx, summary.ID))
		}
		return Describe(err, "look for an image that the engine may have made")
	}, nil)
}
