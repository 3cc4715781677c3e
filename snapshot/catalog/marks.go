package catalog

import "github.com/cua-snapshot/docker-snapshot/labels"

// ComposePrefix begins the labels by which Compose recognizes its containers, volumes and networks.
const ComposePrefix = "com.docker.compose."

// ScratchPrefix begins the names of the containers through which layers are flattened into one.
const ScratchPrefix = "cua-snapshot-flatten-"

// CommitComment returns the comment on the image that a commit makes for a snapshot. Unlike labels,
// a comment is not inherited by images that are built FROM it.
func CommitComment(id labels.ID) string { return "docker snapshot " + string(id) }
