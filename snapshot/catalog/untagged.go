package catalog

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// UntaggedError says that a snapshot has lost its ID tag, but not its image. docker image prune -a does that: it takes from an
// image that a container uses all tags but one, and any of them may stay. It is an errdefs not-found error.
type UntaggedError struct {
	ID    labels.ID
	Ref   string // a tag that the image has
	IDRef string // the one that would make it a snapshot again
}

func (e *UntaggedError) Error() string {
	return fmt.Sprintf("snapshot %s has lost the tag %s, but not its image: that is still there as %s", e.ID, e.IDRef, e.Ref)
}

// Unwrap gives the error its class.
func (e *UntaggedError) Unwrap() error { return cerrdefs.ErrNotFound }

// CheckGone fails with an [UntaggedError] if the image of a snapshot without an ID tag is still there under another of its tags.
func (cat *Catalog) CheckGone(ctx context.Context, s Snapshot) error {
	images, err := cat.ListImages(ctx, Repository(s.Container.Name))
	if err != nil {
		return err
	}
	for _, summary := range images {
		if summary.Labels[labels.KeyID] != string(s.ID) {
			continue
		}
		for _, ref := range summary.RepoTags {
			if err := cat.checkUntagged(ctx, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkUntagged fails with an [UntaggedError] if ref is a tag of a snapshot's image, and no image has the snapshot's ID tag. An image
// that was built FROM a snapshot, or is a former one of it, is none.
func (cat *Catalog) checkUntagged(ctx context.Context, ref string) error {
	found, err := cat.docker.ImageInspect(ctx, ref)
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect image %s: %w", ref, err)
	}
	if found.Config == nil {
		return nil
	}
	record, broken := labels.Decode(found.Config.Labels)
	if broken != nil || found.Comment != CommitComment(record.ID) || !strings.HasPrefix(ref, Repository(record.Container.Name)+":") {
		return nil //nolint:nilerr // it is no snapshot's image, or has got that tag from somebody else
	}
	idRef := TagOf(record.Container.Name, string(record.ID)).String()
	_, err = cat.docker.ImageInspect(ctx, idRef)
	if cerrdefs.IsNotFound(err) {
		return &UntaggedError{ID: record.ID, Ref: ref, IDRef: idRef}
	}
	return dockerop.Describe(err, "inspect image "+idRef)
}
