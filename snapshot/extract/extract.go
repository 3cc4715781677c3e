// Package extract takes files out of a snapshot: from the root filesystem, which the engine reads, or from a volume, which
// a worker does. It changes nothing on the engine.
package extract

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
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
func (x *Extractor) Tar(ctx context.Context, source Source, out io.Writer, p plan.Progress) (err error) {
	if err := source.Snapshot.CheckContainer(); err != nil {
		return err
	}
	w := &walk{Extractor: x, source: source.withDestination(), out: out, progress: p}
	if w.at, w.name, err = w.source.start(); err != nil {
		return err
	}
	if w.isDirectory, w.isContent = isDirectory(source.Path); w.isContent {
		w.name = "."
	}
	p.Status("copy", "copying files")
	err = w.run(ctx)
	if w.parts != nil {
		err = errors.Join(err, w.parts.Close())
	}
	return err
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
