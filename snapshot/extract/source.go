package extract

import (
	"fmt"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// Source names files in a snapshot.
type Source struct {
	Snapshot catalog.Snapshot
	// Volume is the name of a volume, or where it is mounted. Path begins at its root then. Empty: Path begins at the root of
	// the container, and leads into the volumes that are mounted below.
	Volume string
	// Path is absolute. With a slash at its end it is a directory, with "/." what is in that. Symlinks on its way lead
	// where they lead in the container.
	Path string
	// Follow says that a symlink at the end of Path is followed, too.
	Follow bool
}

// NoPathError says that a snapshot has no file of a name. It is an errdefs not-found error.
type NoPathError struct {
	Snapshot labels.ID
	Name     string // of the snapshot
	Volume   string // empty: the root filesystem
	Path     string
}

func (e *NoPathError) Error() string {
	if e.Volume == "" {
		return fmt.Sprintf("there is no %q in the root filesystem of snapshot %s", e.Path, labels.Title(e.Name, e.Snapshot))
	}
	return fmt.Sprintf("there is no %q in %s of snapshot %s", e.Path, labels.DescribeKey(e.Volume), labels.Title(e.Name, e.Snapshot))
}

// Unwrap gives the error its class.
func (e *NoPathError) Unwrap() error { return cerrdefs.ErrNotFound }

// NotHeldError says that a snapshot does not hold the content of a mount.
type NotHeldError struct {
	Snapshot    labels.ID
	Name        string // of the snapshot
	Destination string
	Reason      string
}

func (e *NotHeldError) Error() string {
	return fmt.Sprintf("the mount at %s is not in snapshot %s: %s", e.Destination, labels.Title(e.Name, e.Snapshot), e.Reason)
}

// Unwrap gives the error its class.
func (e *NotHeldError) Unwrap() error { return cerrdefs.ErrNotFound }

// HasVolume tells whether a word names a mount of a snapshot.
func HasVolume(s catalog.Snapshot, word string) bool {
	_, found := mountOf(s, word)
	return found
}

func mountOf(s catalog.Snapshot, word string) (labels.Mount, bool) {
	at := slices.IndexFunc(s.Mounts, func(m labels.Mount) bool {
		return word != "" && (word == m.Name || strings.TrimSuffix(word, "/") == m.Destination)
	})
	if at < 0 {
		return labels.Mount{}, false
	}
	return s.Mounts[at], true
}

// start is where the path of a source begins, and what it is called where it comes.
func (s Source) start() (at position, name string, err error) {
	place := path.Join("/", s.Path)
	if s.Volume == "" {
		return position{rest: components(place)}, path.Base(place), nil
	}
	m, known := mountOf(s.Snapshot, s.Volume)
	if !known {
		return position{}, "", &NoPathError{Snapshot: s.Snapshot.ID, Name: s.Snapshot.Name, Volume: s.Volume, Path: s.Path}
	}
	at = position{mount: &m, rest: components(place)}
	if s.Volume != m.Name {
		at = into(&m, components(place))
	}
	return at, path.Base(path.Join(m.Destination, place)), nil
}

// withDestination takes "DESTINATION:/path" apart, if something is mounted there.
func (s Source) withDestination() Source {
	if s.Volume != "" {
		return s
	}
	for _, m := range s.Snapshot.Mounts {
		if rest, is := strings.CutPrefix(s.Path, m.Destination+":/"); is {
			s.Volume, s.Path = m.Destination, "/"+rest
			return s
		}
	}
	return s
}

// isDirectory tells whether a path has to be a directory, and whether what is in that is meant.
func isDirectory(given string) (isDirectory, isContent bool) {
	isContent = strings.HasSuffix(given, "/.")
	return isContent || strings.HasSuffix(given, "/"), isContent
}

// ending is how the engine is told what a path means.
func ending(place string, isDirectory, isContent bool) string {
	switch {
	case isContent && place == "/":
		return "."
	case isContent:
		return "/."
	case isDirectory && place != "/":
		return "/"
	}
	return ""
}

// mountsBelow are those whose content a container would see below a path.
func mountsBelow(s catalog.Snapshot, place string) []labels.Mount {
	return slices.DeleteFunc(slices.Clone(s.Mounts), func(m labels.Mount) bool { return !isBelow(m.Destination, place) })
}

func isBelow(place, directory string) bool {
	return place != directory && strings.HasPrefix(place, strings.TrimSuffix(directory, "/")+"/")
}
