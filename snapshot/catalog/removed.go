package catalog

import (
	"context"
	"strings"

	"github.com/docker/docker/api/types/image"
)

// A removed snapshot whose image a container uses keeps that image. Without a tag nothing would tell it from an image that is about
// to become a snapshot, so it gets a tag in a repository of its own until it can go.

// removedRepository holds the images of removed snapshots that containers use.
const removedRepository = "cua-snapshot-removed"

// removedDigits is how many digits of an image's ID its tag there has.
const removedDigits = 24

// RemovedTag returns the tag of an image whose snapshot was removed.
func RemovedTag(imageID string) string {
	_, digest, _ := strings.Cut(imageID, ":")
	return Tag{removedRepository, digest[:min(len(digest), removedDigits)]}.String()
}

// RemovedImages returns the images of removed snapshots that containers used then. They have only their tag there.
func (cat *Catalog) RemovedImages(ctx context.Context) ([]image.Summary, error) {
	return cat.ListImages(ctx, removedRepository)
}
