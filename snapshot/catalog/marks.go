package catalog

import (
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// ComposePrefix begins the labels by which Compose recognizes its containers, volumes and networks.
const ComposePrefix = "com.docker.compose."

// ScratchPrefix begins the names of the containers through which layers are flattened into one.
const ScratchPrefix = "cua-snapshot-flatten-"

// CommitComment returns the comment on the image that a commit makes for a snapshot. Unlike labels,
// a comment is not inherited by images that are built FROM it.
func CommitComment(id labels.ID) string { return "docker snapshot " + string(id) }

// IsCommitted tells whether an image was made for the snapshot that its labels name, and was not built FROM that one.
func IsCommitted(found image.InspectResponse) bool {
	return found.Config != nil && found.Comment == CommitComment(labels.ID(found.Config.Labels[labels.KeyID]))
}
