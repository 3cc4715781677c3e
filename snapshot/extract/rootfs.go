package extract

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// rootfs is the root filesystem of a snapshot, in a container that never starts. Nothing is mounted there, so whoever
// walks through it has to know where the mounts are.
type rootfs struct {
	docker  *dockerop.Engine
	scratch string
	seen    map[string]entry
	points  map[string]*labels.Mount // by where they are; no symlink leads there
}

// entry is what is at a path of a root filesystem.
type entry struct {
	isThere, isDirectory, isLink bool
	target                       string
}

// withRoot runs f when the root filesystem can be read.
func (w *walk) withRoot(ctx context.Context, f func(context.Context) error) error {
	return w.catalog.WithScratch(ctx, "cp", w.source.Snapshot.ImageID, func(scratch string) error {
		w.root = &rootfs{docker: w.docker, scratch: scratch, seen: map[string]entry{}, points: map[string]*labels.Mount{}}
		if w.mayCopyAsAsked() {
			return w.copyRoot(ctx, path.Join("/", w.source.Path))
		}
		for i := range w.source.Snapshot.Mounts {
			m := &w.source.Snapshot.Mounts[i]
			at, err := w.root.resolve(ctx, m.Destination)
			if err != nil {
				return err
			}
			w.root.points[at] = m
		}
		return f(ctx)
	})
}

// mayCopyAsAsked tells whether the engine can follow the path by itself: nothing is mounted, so none leads into a mount.
func (w *walk) mayCopyAsAsked() bool {
	return len(w.source.Snapshot.Mounts) == 0 && !w.source.Follow
}

// inRoot goes on by one name in the root filesystem. Without any left it copies what is there.
func (w *walk) inRoot(ctx context.Context) (finished bool, err error) {
	if len(w.at.rest) == 0 {
		return true, w.copyRoot(ctx, "/"+w.at.dir)
	}
	next, later := path.Join(w.at.dir, w.at.rest[0]), w.at.rest[1:]
	if m := w.root.points["/"+next]; m != nil {
		w.at = into(m, later)
		return false, nil
	}
	e, err := w.root.look(ctx, "/"+next)
	switch isLast := len(later) == 0; {
	case err != nil:
		return false, err
	case e.isLink && (!isLast || w.isDirectory || w.source.Follow):
		return false, w.follow(next, e.target, later)
	case !e.isThere, !isLast && !e.isDirectory:
		return false, &NoPathError{Snapshot: w.source.Snapshot.ID, Name: w.source.Snapshot.Name, Path: w.source.Path}
	}
	w.at.dir, w.at.rest = next, later
	return false, nil
}

// copyRoot has the engine write what is at a place of the root filesystem.
func (w *walk) copyRoot(ctx context.Context, place string) error {
	asked, isRenamed := place+ending(place, w.isDirectory, w.isContent), false
	if !w.isContent && path.Base(place) != w.name {
		isRenamed = true
		if place == "/" || w.root.seen[place].isDirectory {
			asked = place + ending(place, true, true)
		}
	}
	files, _, err := w.docker.CopyFromContainer(ctx, w.root.scratch, asked)
	if cerrdefs.IsNotFound(err) {
		return &NoPathError{Snapshot: w.source.Snapshot.ID, Name: w.source.Snapshot.Name, Path: w.source.Path}
	}
	if err == nil {
		defer files.Close()
		counted := w.progress.Counting("copy", "copying files", files)
		if isRenamed {
			err = renamed(counted, path.Base(asked), w.name, w.out)
		} else {
			_, err = io.Copy(w.out, counted)
		}
	}
	if err != nil {
		return fmt.Errorf("copy %s from snapshot %s: %w", w.source.Path, w.source.Snapshot.Title(), err)
	}
	w.warnOfMounts(w.root.mountsBelow(place))
	return nil
}

// mountsBelow are the mounts whose content a container would see below a place.
func (r *rootfs) mountsBelow(place string) []labels.Mount {
	var all []labels.Mount
	for _, at := range slices.Sorted(maps.Keys(r.points)) {
		if isBelow(at, place) {
			all = append(all, *r.points[at])
		}
	}
	return all
}

// resolve follows the symlinks on the way to where something is mounted. What is not there is made by the engine.
func (r *rootfs) resolve(ctx context.Context, destination string) (string, error) {
	at := position{rest: components(destination)}
	for links := 0; len(at.rest) > 0; at = at.upwards() {
		next, later := path.Join(at.dir, at.rest[0]), at.rest[1:]
		e, err := r.look(ctx, "/"+next)
		if err != nil {
			return "", err
		}
		if !e.isLink {
			at.dir, at.rest = next, later
			continue
		}
		if links++; links > maxLinks {
			return "", &LinksError{Path: destination}
		}
		at = at.behind(next, e.target, later)
	}
	return "/" + at.dir, nil
}

// look tells what is at a path that leads through no symlink.
func (r *rootfs) look(ctx context.Context, place string) (entry, error) {
	if e, known := r.seen[place]; known {
		return e, nil
	}
	stat, err := r.docker.ContainerStatPath(ctx, r.scratch, place)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return entry{}, fmt.Errorf("look up %s in the root filesystem: %w", place, err)
	}
	e := entry{isThere: err == nil, isDirectory: stat.Mode&os.ModeDir != 0, isLink: stat.Mode&os.ModeSymlink != 0}
	if e.isLink {
		if e.target, err = r.readLink(ctx, place); err != nil {
			return entry{}, fmt.Errorf("read symlink %s of the root filesystem: %w", place, err)
		}
	}
	r.seen[place] = e
	return e, nil
}

// readLink is what a symlink says. An engine tells of it by itself only where it leads without mounts.
func (r *rootfs) readLink(ctx context.Context, place string) (string, error) {
	files, _, err := r.docker.CopyFromContainer(ctx, r.scratch, place)
	if err != nil {
		return "", err
	}
	defer files.Close()
	h, err := tar.NewReader(files).Next()
	if err != nil {
		return "", err
	}
	return h.Linkname, nil
}

// renamed copies a tar of one file, or of a directory and what is in it, and gives that another name.
func renamed(in io.Reader, from, to string, out io.Writer) error {
	w := tar.NewWriter(out)
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.Close()
		}
		if err != nil {
			return err
		}
		h.Name = rename(h.Name, from, to)
		if h.Typeflag == tar.TypeLink {
			h.Linkname = rename(h.Linkname, from, to)
		}
		h.Format = tar.FormatPAX // whatever the length of the name
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil { //nolint:gosec // nothing of it is compressed
			return err
		}
	}
}

// rename puts one name in the place of another at the beginning of a path.
func rename(given, from, to string) string {
	whole := path.Clean(given)
	switch {
	case from == ".": // everything in the tar is below it
		whole = path.Join(to, whole)
	case whole == from, strings.HasPrefix(whole, from+"/"):
		whole = path.Join(to, whole[len(from):])
	}
	if strings.HasSuffix(given, "/") {
		whole += "/"
	}
	return whole
}
