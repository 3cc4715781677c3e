package dockerop

import (
	"context"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
)

// RemoveImage removes an image by its ID, or one of its tags. One that is gone
// already is as good.
func (e *Engine) RemoveImage(ctx context.Context, id string) error {
	_, err := e.ImageRemove(ctx, id, image.RemoveOptions{Force: true, PruneChildren: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// How often a tag is set before its failure counts, and how long it is waited in
// between.
const (
	TagTries = 20
	tagPause = 10 * time.Millisecond
)

// Tag makes ref point at an image. An engine with the containerd image store moves
// a tag in two steps; if somebody else moves the same one in between, it fails, and
// says so as an internal error.
func (e *Engine) Tag(ctx context.Context, imageID, ref string) error {
	for n := 1; ; n++ {
		err := e.ImageTag(ctx, imageID, ref)
		if err == nil || n == TagTries || !strings.Contains(err.Error(), "already exists") {
			return err
		}
		select {
		case <-time.After(tagPause):
		case <-ctx.Done():
			return err
		}
	}
}

// Retag makes ref point at an image again, or at none. An image that is gone is
// left to rest.
func (e *Engine) Retag(ctx context.Context, ref, imageID string) error {
	if imageID == "" {
		return e.RemoveImage(ctx, ref)
	}
	if err := e.Tag(ctx, imageID, ref); !cerrdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// ImagePlatform is os/arch[/variant].
func ImagePlatform(i image.InspectResponse) string {
	parts := []string{i.Os, i.Architecture}
	if i.Variant != "" {
		parts = append(parts, i.Variant)
	}
	return strings.Join(parts, "/")
}
