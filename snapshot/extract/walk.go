package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// maxLinks is how many symlinks a path may lead through, as in the kernel.
const maxLinks = 40

// LinksError says that a path leads through too many symlinks, perhaps in a circle.
type LinksError struct{ Path string }

func (e *LinksError) Error() string {
	return fmt.Sprintf("%q leads through more than %d symlinks", e.Path, maxLinks)
}

// Unwrap gives the error its class.
func (e *LinksError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// walk follows a path of a snapshot through its root filesystem and its mounts, as the kernel would in the container, and
// writes what it finds at the end. A symlink never leads out of the container: there is nothing above its root.
type walk struct {
	*Extractor
	source                 Source
	at                     position
	name                   string // of what is found, in the tar
	isDirectory, isContent bool
	out                    io.Writer
	progress               plan.Progress
	links                  int
	parts                  *archives.Parts // nil: no volume was looked into so far
	root                   *rootfs         // nil: neither was the root filesystem
}

// run follows the path to its end.
func (w *walk) run(ctx context.Context) error {
	for {
		w.at = w.at.upwards()
		if w.at.mount != nil || w.root == nil {
			w.at = w.at.inner(w.source.Snapshot.Mounts)
		}
		finished, err := false, error(nil)
		switch {
		case w.at.mount != nil:
			finished, err = w.inVolume(ctx)
		case w.root == nil:
			return w.withRoot(ctx, w.run)
		default:
			finished, err = w.inRoot(ctx)
		}
		if finished || err != nil {
			return err
		}
	}
}

// follow goes on behind a symlink.
func (w *walk) follow(link, target string, later []string) error {
	if w.links++; w.links > maxLinks {
		return &LinksError{Path: w.source.Path}
	}
	if len(later) == 0 && strings.HasSuffix(target, "/") {
		w.isDirectory = true
	}
	w.at = w.at.behind(link, target, later)
	return nil
}

// inVolume goes on in a volume: to the end of the path, to the next "..", or to a symlink.
func (w *walk) inVolume(ctx context.Context) (finished bool, err error) {
	m := *w.at.mount
	if m.Archive == nil {
		return false, &NotHeldError{Snapshot: w.source.Snapshot.ID, Name: w.source.Snapshot.Name, Destination: m.Destination, Reason: m.Skipped}
	}
	if w.parts == nil {
		if w.parts, err = w.archives.OpenParts(ctx, w.source.Snapshot, w.progress); err != nil {
			return false, err
		}
	}
	names, later := w.at.ahead()
	part := archives.Part{Path: path.Join(w.at.dir, path.Join(names...)), Name: w.name, Follow: w.source.Follow, Directory: w.isDirectory}
	if finished = len(later) == 0; !finished {
		part.Look, part.Directory = true, true
	}
	link, err := w.parts.Extract(ctx, m, part, w.out)
	switch {
	case errors.Is(err, volumebackup.ErrNoEntry):
		return false, &NoPathError{Snapshot: w.source.Snapshot.ID, Name: w.source.Snapshot.Name, Volume: mountName(m), Path: w.source.Path}
	case err != nil:
		return false, fmt.Errorf("copy %s from %s of snapshot %s: %w", w.source.Path, m.Describe(), w.source.Snapshot.Title(), err)
	case link == nil:
		w.at.dir, w.at.rest = part.Path, later
		if finished {
			w.warnOfMounts(mountsBelow(w.source.Snapshot, w.at.place()))
		}
		return finished, nil
	}
	whole := slices.Concat(components(w.at.dir), w.at.rest)
	passed := min(len(components(string(link.Path))), len(whole))
	return false, w.follow(string(link.Path), string(link.Target), whole[passed:])
}

// warnOfMounts says which mounts the container would show below what is copied.
func (w *walk) warnOfMounts(below []labels.Mount) {
	for _, m := range below {
		w.progress.Warn("copy", fmt.Sprintf("%s is not copied along: it is mounted at %s", mountName(m), m.Destination))
	}
}
