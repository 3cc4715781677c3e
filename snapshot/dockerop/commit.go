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

// Commit makes an untagged image of the container's filesystem and returns its ID.
//
// An engine does not stop a commit when its client goes away. So after a cancellation Commit waits
// for the answer, for [CleanupTimeout] at most, and removes the image.
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
		if r.err != nil && options.Reference == "" { // a tagged one is found by its tag
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

// removeUnansweredCommit removes the image of a commit that succeeded although the call failed: the
// connection may break before the answer comes. The image has no tag, and its label holds the ID of
// this snapshot.
func (e *Engine) removeUnansweredCommit(ctx context.Context, failure error, options container.CommitOptions) error {
	id := options.Config.Labels[labels.KeyID]
	if cerrdefs.IsConflict(failure) || cerrdefs.IsNotFound(failure) || cerrdefs.IsInvalidArgument(failure) || id == "" {
		return nil // the engine has answered: it made nothing
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
		return Describe(err, "look for an image that the engine may have committed")
	}, nil)
}
