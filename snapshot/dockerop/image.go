package dockerop

import (
	"bytes"
	"context"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// RemoveImage removes an image if id is its ID, or one of its tags. It succeeds if that is gone
// already. Once it has asked the engine, it waits for the answer; see [outlive].
func (e *Engine) RemoveImage(ctx context.Context, id string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	ctx, cancel := outlive(ctx)
	defer cancel()
	_, err := e.ImageRemove(ctx, id, image.RemoveOptions{Force: true, PruneChildren: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// LoadImage loads an archive of an image, whose name is in the archive. An image that had the name
// loses it.
func (e *Engine) LoadImage(ctx context.Context, archive []byte) error {
	answer, err := e.ImageLoad(ctx, bytes.NewReader(archive), client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = LastStatus(answer.Body)
	return err
}

// TagTries is how often [Engine.Tag] sets a tag before it gives up, with tagPause in between.
const (
	TagTries = 20
	tagPause = 10 * time.Millisecond
)

// Tag makes ref point at an image. An engine with the containerd image store moves a tag in two
// steps. If somebody else moves the same tag in between, it fails with an internal error that says
// "already exists", so Tag tries again. Once it has asked the engine, it waits for the answer; see [outlive].
func (e *Engine) Tag(ctx context.Context, imageID, ref string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	asking, cancel := outlive(ctx)
	defer cancel()
	for n := 1; ; n++ {
		err := e.ImageTag(asking, imageID, ref)
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

// Retag makes ref point at an image again, as it did before. If imageID is empty, ref pointed at
// none, and is removed. An image that is gone is no error.
func (e *Engine) Retag(ctx context.Context, ref, imageID string) error {
	if imageID == "" {
		return e.RemoveImage(ctx, ref)
	}
	if err := e.Tag(ctx, imageID, ref); !cerrdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// ImagePlatform returns os/arch[/variant].
func ImagePlatform(i image.InspectResponse) string {
	parts := []string{i.Os, i.Architecture}
	if i.Variant != "" {
		parts = append(parts, i.Variant)
	}
	return strings.Join(parts, "/")
}
