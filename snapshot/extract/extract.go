// Package extract takes files out of a snapshot: from the root filesystem, which the engine reads, or from a volume, which
// a worker does. It changes nothing on the engine.
package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/untar"
)

// Extractor takes files out of snapshots.
type Extractor struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
}

// New returns an extractor.
func New(docker *dockerop.Engine, snapshots *catalog.Catalog, stored *archives.Archives) *Extractor {
	return &Extractor{docker: docker, catalog: snapshots, archives: stored}
}

// Tar writes what a source names to out, as a tar. It reads as it writes: if it fails, what was written is not to be
// trusted.
func (x *Extractor) Tar(ctx context.Context, source Source, out io.Writer, p plan.Progress) error {
	found, err := source.find()
	if err != nil {
		return err
	}
	for _, m := range found.below {
		p.Warn("copy", fmt.Sprintf("%s is not copied along: it is mounted at %s", mountName(m), m.Destination))
	}
	p.Status("copy", "copying files")
	if found.mount == nil {
		return x.fromRoot(ctx, source, found.path, out, p)
	}
	err = x.archives.Extract(ctx, source.Snapshot, *found.mount, found.part, out, p)
	if errors.Is(err, volumebackup.ErrNoEntry) {
		return &NoPathError{Snapshot: source.Snapshot.ID, Volume: mountName(*found.mount), Path: source.Path}
	}
	if err != nil {
		return fmt.Errorf("copy %s from volume %s of snapshot %s: %w", source.Path, mountName(*found.mount), source.Snapshot.ID, err)
	}
	return nil
}

// fromRoot has the engine read the root filesystem, through a container that never starts.
func (x *Extractor) fromRoot(ctx context.Context, source Source, path string, out io.Writer, p plan.Progress) error {
	return x.catalog.WithScratch(ctx, "cp", source.Snapshot.ImageID, func(scratch string) error {
		files, _, err := x.docker.CopyFromContainer(ctx, scratch, path)
		if cerrdefs.IsNotFound(err) {
			return &NoPathError{Snapshot: source.Snapshot.ID, Path: source.Path}
		}
		if err == nil {
			defer files.Close()
			_, err = io.Copy(out, p.Counting("copy", "copying files", files))
		}
		if err != nil {
			return fmt.Errorf("copy %s from snapshot %s: %w", source.Path, source.Snapshot.ID, err)
		}
		return nil
	})
}

// Unpack copies what a source names to a directory, a file or a new name of this machine.
func (x *Extractor) Unpack(ctx context.Context, source Source, destination string, p plan.Progress) error {
	to, err := untar.Open(destination)
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := to.Unpack(ctx, in, untar.Reporter{Warn: limited(p)})
		if err == nil {
			_, err = io.Copy(io.Discard, in) // what pads the tar
		}
		_ = in.CloseWithError(err) // a pipe takes any error
		unpacked <- err
	}()
	err = x.Tar(ctx, source, out, p)
	_ = out.CloseWithError(err)
	unpackErr := <-unpacked
	if unpackErr != nil && (err == nil || errors.Is(err, unpackErr)) { // then nothing else went wrong
		err = unpackErr
	}
	return errors.Join(err, to.Close())
}

// maxWarnings is how many entries are named that could not be made exactly.
const maxWarnings = 20

// limited passes on warnings, but not too many.
func limited(p plan.Progress) func(path, message string) {
	warned := 0
	return func(path, message string) {
		switch warned++; {
		case warned <= maxWarnings:
			p.Warn("copy", path+": "+message)
		case warned == maxWarnings+1:
			p.Warn("copy", "there are more of these")
		}
	}
}

// mountName is what users call a mount.
func mountName(m labels.Mount) string { return cmp.Or(m.Name, m.Source, m.Type) }
