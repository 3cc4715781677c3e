package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// UntaggedError says that a snapshot has lost its ID tag, but not its image. docker image prune -a does that: it takes from an
// image that a container uses all tags but one, and any of them may stay. It is an errdefs not-found error.
type UntaggedError struct {
	ID    labels.ID
	Name  string
	Ref   string // a tag that the image has
	IDRef string // the one that would make it a snapshot again
}

func (e *UntaggedError) Error() string {
	return fmt.Sprintf("snapshot %s has lost the tag %s, but not its image: that is still there as %s", labels.Title(e.Name, e.ID), e.IDRef, e.Ref)
}

// Unwrap gives the error its class.
func (e *UntaggedError) Unwrap() error { return cerrdefs.ErrNotFound }

// CheckGone fails with an [UntaggedError] if the image of a snapshot without an ID tag is still there under another of its tags.
func (cat *Catalog) CheckGone(ctx context.Context, s Snapshot) error {
	images, err := cat.imagesLabelled(ctx, Repository(s.Container.Name), labels.KeyID, string(s.ID))
	if err != nil {
		return fmt.Errorf("look for the image of snapshot %s: %w", s.ID, err)
	}
	for _, summary := range images {
		found, err := cat.docker.ImageInspect(ctx, summary.ID)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("inspect image %s: %w", summary.ID, err)
		}
		if err := cat.checkUntagged(ctx, found, found.RepoTags...); err != nil {
			return err
		}
	}
	return nil
}

// checkUntagged fails with an [UntaggedError] if an image is a snapshot's, some of refs are tags of that one, and no image has its ID
// tag. An image that was built FROM a snapshot, or is a former one of it, is none.
func (cat *Catalog) checkUntagged(ctx context.Context, found image.InspectResponse, refs ...string) error {
	if !IsCommitted(found) {
		return nil
	}
	record, err := labels.Decode(found.Config.Labels)
	if err != nil {
		return nil //nolint:nilerr // nobody can restore that
	}
	at := slices.IndexFunc(refs, func(ref string) bool { return strings.HasPrefix(ref, Repository(record.Container.Name)+":") })
	if at < 0 {
		return nil // somebody has tagged it as another's
	}
	idRef := TagOf(record.Container.Name, string(record.ID)).String()
	_, err = cat.docker.ImageInspect(ctx, idRef)
	if cerrdefs.IsNotFound(err) {
		return &UntaggedError{ID: record.ID, Name: record.Name, Ref: refs[at], IDRef: idRef}
	}
	return dockerop.Describe(err, "inspect image "+idRef)
}
