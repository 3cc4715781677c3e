package enginetest

import (
	"context"
	"fmt"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// fakeComparer compares the contents of volumes, each as if it were one file.
type fakeComparer struct {
	*fakeWorker
	learnt []string
}

// Diff finds one change at most.
func (c *fakeComparer) Diff(ctx context.Context, old, now volumebackup.ComparedTree, visit func(volumebackup.FileChange)) error {
	return c.request(ctx, "diff", func() error {
		before, err := c.content(old)
		if err != nil {
			return err
		}
		after, err := c.content(now)
		if err == nil && before != after {
			visit(volumebackup.FileChange{Path: "content", Type: changes.Modified, SizeDelta: int64(len(after) - len(before))})
		}
		return err
	})
}

func (c *fakeComparer) content(t volumebackup.ComparedTree) (string, error) {
	switch {
	case t.Volume != "":
		return c.service.docker.FindVolume(t.Volume).Content, nil
	case t.Archive == nil:
		return t.Image, nil
	}
	if err := c.service.holds(t.Archive.Snapshot, t.Archive.Archive); err != nil {
		return "", err
	}
	return c.service.Archives[t.Archive.Snapshot][t.Archive.Archive], nil
}

// Known tells which root filesystems it was told of.
func (c *fakeComparer) Known(ctx context.Context, _ []string) (known []string, err error) {
	err = c.request(ctx, "known", func() error {
		known = c.learnt
		return nil
	})
	return known, err
}

// Learn takes what a root filesystem holds.
func (c *fakeComparer) Learn(ctx context.Context, image string, _ bool, write func(io.Writer) error) error {
	if err := write(io.Discard); err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	return c.request(ctx, "learn", func() error {
		c.learnt = append(c.learnt, image)
		return nil
	})
}
