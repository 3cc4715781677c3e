package diff

import (
	"context"
	"fmt"
	"io"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// learn tells the worker what the root filesystems of a part hold. What an image holds is kept in the store, so each image
// is read once.
func (d *Differ) learn(ctx context.Context, stored archives.Service, w archives.Comparer, p *part, progress plan.Progress) error {
	if err := d.export(ctx, w, p.old, progress); err != nil {
		return err
	}
	if done, err := d.walk(ctx, stored, w, p, progress); done || err != nil {
		return err
	}
	return d.export(ctx, w, p.now, progress)
}

// export tells the worker what a root filesystem holds that it does not know, by the engine's export.
func (d *Differ) export(ctx context.Context, w archives.Comparer, c content, progress plan.Progress) error {
	known, err := w.Known(ctx, []string{c.image})
	if err != nil || len(known) > 0 {
		return err
	}
	progress.Status("read rootfs", "reading the root filesystem of "+c.source)
	return d.withFiles(ctx, c, func(files io.Reader) error {
		counted := progress.Counting("read rootfs", "reading a root filesystem", files)
		o := volumebackup.LearnOptions{Image: c.image, Keep: c.isImage}
		return w.Learn(ctx, o, func(out io.Writer) error { return changes.FromTar(counted, out) })
	})
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
