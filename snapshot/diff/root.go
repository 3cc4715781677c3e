package diff

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// learn tells the worker what the root filesystems of a part hold. What an image holds is kept in the store, so each image
// is read once.
func (d *Differ) learn(ctx context.Context, w archives.Comparer, p part, progress plan.Progress) error {
	known, err := w.Known(ctx, []string{p.old.image, p.now.image})
	if err != nil {
		return err
	}
	for _, c := range []content{p.old, p.now} {
		if slices.Contains(known, c.image) {
			continue
		}
		progress.Status("read rootfs", "reading the root filesystem of "+c.source)
		err := d.withFiles(ctx, c, func(files io.Reader) error {
			counted := progress.Counting("read rootfs", "reading a root filesystem", files)
			return w.Learn(ctx, c.image, c.isImage, func(out io.Writer) error { return changes.FromTar(counted, out) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// withFiles runs f with a tar of a root filesystem. That of an image is read through a container that never starts.
func (d *Differ) withFiles(ctx context.Context, c content, f func(io.Reader) error) error {
	export := func(id string) error {
		files, err := d.docker.ContainerExport(ctx, id)
		if err != nil {
			return fmt.Errorf("export files: %w", err)
		}
		defer files.Close()
		return f(files)
	}
	if !c.isImage {
		return export(c.source)
	}
	return d.catalog.WithScratch(ctx, "diff", c.source, export)
}
