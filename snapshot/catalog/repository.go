package catalog

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Namespace is the part of every snapshot's repository before the container.
const Namespace = "cua-snapshot/"

// sessionNamespace is the same of the images that keep the sessions of runs. Lists of snapshots do not
// show what is in it.
const sessionNamespace = "cua-snapshot-run/"

// legal matches the names that a repository can have: words with '.', '_', '__' or any number of
// '-' between two of them. illegal matches every run of characters that cannot be in a word.
var (
	legal   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)
	illegal = regexp.MustCompile(`[^a-z0-9]+`)
)

// Engines take container names of any length, but repositories of at most 255 characters,
// docker.io/ included.
const (
	maxRepository = 255 - len("docker.io/") - len(Namespace)
	digestMark    = "--"
	digestDigits  = 16
)

// Repository returns the repository of the snapshots of the container with that name. No two names
// share one. Most names can be a repository as they are. Other names, with capitals or with
// separators that repositories cannot have, are made legal and get a digest of the name at the end;
// no name that is used as it is ends like that.
func Repository(containerName string) string {
	return Namespace + repositoryName(strings.TrimPrefix(containerName, "/"))
}

// repositoryName makes a name that a repository can have of one that it perhaps cannot have.
func repositoryName(name string) string {
	if len(name) <= maxRepository && legal.MatchString(name) && !hasDigest(name) {
		return name
	}
	digest := sha256.Sum256([]byte(name))
	shown := illegal.ReplaceAllStringFunc(strings.ToLower(name), func(separator string) string {
		if separator == "." || separator == "_" || separator == "__" || strings.Trim(separator, "-") == "" {
			return separator
		}
		return "-"
	})
	shown = shown[:min(len(shown), maxRepository-len(digestMark)-digestDigits)]
	return fmt.Sprintf("%s%s%x", strings.Trim(shown, "._-"), digestMark, digest[:digestDigits/2])
}

// hasDigest tells whether a name ends like a repository with a digest.
func hasDigest(name string) bool {
	at := len(name) - len(digestMark) - digestDigits
	return at >= 0 && strings.HasPrefix(name[at:], digestMark) && labels.IsDigits(name[at+len(digestMark):], digestDigits, digestDigits)
}

// Tag is a reference to an image by repository and tag.
type Tag struct{ repository, tag string }

// TagOf returns a tag in a container's repository.
func TagOf(container, tag string) Tag { return Tag{Repository(container), tag} }

// ParseTag reads a reference that this program has made.
func ParseTag(ref string) Tag {
	repository, tag, _ := strings.Cut(ref, ":")
	return Tag{repository, tag}
}

// String returns the reference as engines write it.
func (t Tag) String() string { return t.repository + ":" + t.tag }

// parseReference reads "web:name", where web is a container, and "cua-snapshot/web:name", which is
// a reference as the engine shows it. It returns false for a word without a tag.
func parseReference(word string) (Tag, bool) {
	container, tag, found := strings.Cut(word, ":")
	if !found || !labels.IsTag(tag) {
		return Tag{}, false
	}
	if repository, ok := strings.CutPrefix(container, Namespace); ok {
		return Tag{container, tag}, legal.MatchString(repository)
	}
	return Tag{Repository(container), tag}, labels.IsContainerName(container)
}
