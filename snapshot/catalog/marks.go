package catalog

import (
	"github.com/cua-snapshot/docker-snapshot/labels"
)

// ComposePrefix begins the labels by which Compose knows what is its own.
const ComposePrefix = "com.docker.compose."

// ScratchPrefix begins the names of the containers that making a flat image needs.
const ScratchPrefix = "cua-snapshot-flatten-"

// CommitComment marks the image that a commit makes. Unlike labels it is not passed
// on to images that are built FROM it.
func CommitComment(id labels.ID) string { return "docker snapshot " + string(id) }
