package extract

import (
	"fmt"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// Source names files in a snapshot.
type Source struct {
	Snapshot catalog.Snapshot
	// Volume is the name of a volume, or where it is mounted. Path begins at its root then. Empty: Path begins at the root of
	// the container, and leads into the volumes that are mounted below.
	Volume string
	// Path is absolute. With a slash at its end it is a directory, with "/." what is in that.
	Path string
}

// NoPathError says that a snapshot has no file of a name. It is an errdefs not-found error.
type NoPathError struct {
	Snapshot labels.ID
	Volume   string // empty: the root filesystem
	Path     string
}

func (e *NoPathError) Error() string {
	if e.Volume == "" {
		return fmt.Sprintf("there is no %q in the root filesystem of snapshot %s", e.Path, e.Snapshot)
	}
	return fmt.Sprintf("there is no %q in volume %s of snapshot %s", e.Path, e.Volume, e.Snapshot)
}

// Unwrap gives the error its class.
func (e *NoPathError) Unwrap() error { return cerrdefs.ErrNotFound }

// NotHeldError says that a snapshot does not hold the content of a mount.
type NotHeldError struct {
	Snapshot    labels.ID
	Destination string
	Reason      string
}

func (e *NotHeldError) Error() string {
	return fmt.Sprintf("what is mounted at %s is not in snapshot %s: %s", e.Destination, e.Snapshot, e.Reason)
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

// found is where the files are that a source names.
type found struct {
	mount *labels.Mount // nil: in the root filesystem
	part  archives.Part // of the mount
	path  string        // for the engine
	place string        // in the container
	below []labels.Mount
}

// find looks up where the files are.
func (s Source) find() (found, error) {
	if err := s.Snapshot.CheckContainer(); err != nil {
		return found{}, err
	}
	s = s.withDestination()
	place, isDirectory, isContent := parsePath(s.Path)
	var f found
	if s.Volume != "" {
		m, known := mountOf(s.Snapshot, s.Volume)
		if !known {
			return found{}, &NoPathError{Snapshot: s.Snapshot.ID, Volume: s.Volume, Path: s.Path}
		}
		f.mount, place = &m, path.Join(m.Destination, place)
	} else {
		f.mount = s.mountAbove(place)
	}
	f.place, f.below = place, s.mountsBelow(place)
	if f.mount == nil {
		f.path = place + ending(place, isDirectory, isContent)
		return f, nil
	}
	if f.mount.Archive == nil {
		return found{}, &NotHeldError{Snapshot: s.Snapshot.ID, Destination: f.mount.Destination, Reason: f.mount.Skipped}
	}
	f.part = archives.Part{
		Path:      strings.TrimPrefix(strings.TrimPrefix(place, strings.TrimSuffix(f.mount.Destination, "/")), "/"),
		Directory: isDirectory, Name: path.Base(place),
	}
	if isContent {
		f.part.Name = "."
	}
	return f, nil
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

// parsePath makes a path clean, and says what its ending means.
func parsePath(given string) (place string, isDirectory, isContent bool) {
	isContent = strings.HasSuffix(given, "/.")
	isDirectory = isContent || strings.HasSuffix(given, "/")
	return path.Join("/", given), isDirectory, isContent
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

// mountAbove is the innermost mount that holds a path.
func (s Source) mountAbove(place string) *labels.Mount {
	var inner *labels.Mount
	for i, m := range s.Snapshot.Mounts {
		if (place == m.Destination || isBelow(place, m.Destination)) && (inner == nil || len(m.Destination) > len(inner.Destination)) {
			inner = &s.Snapshot.Mounts[i]
		}
	}
	return inner
}

// mountsBelow are those whose content a container would see below a path.
func (s Source) mountsBelow(place string) []labels.Mount {
	return slices.DeleteFunc(slices.Clone(s.Snapshot.Mounts), func(m labels.Mount) bool { return !isBelow(m.Destination, place) })
}

func isBelow(place, directory string) bool {
	return place != directory && strings.HasPrefix(place, strings.TrimSuffix(directory, "/")+"/")
}
