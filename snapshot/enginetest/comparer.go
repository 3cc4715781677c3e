package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
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
		return c.service.docker.contentOf(t.Volume), nil
	case t.Archive == nil:
		return t.Image, nil
	}
	if err := c.service.holds(t.Archive.Snapshot, t.Archive.Archive); err != nil {
		return "", err
	}
	return c.service.Archives[t.Archive.Snapshot][t.Archive.Archive], nil
}

// Known tells which root filesystems it was told of, each with [FakeVolumes.RootEntries].
func (c *fakeComparer) Known(ctx context.Context, images []string) (known []volumebackup.KnownImage, err error) {
	err = c.request(ctx, "known", func() error {
		for _, key := range images {
			if slices.Contains(c.learnt, key) {
				known = append(known, volumebackup.KnownImage{Image: key, Entries: c.service.RootEntries})
			}
		}
		return nil
	})
	return known, err
}

// Learn takes what a root filesystem holds.
func (c *fakeComparer) Learn(ctx context.Context, o volumebackup.LearnOptions, write func(io.Writer) error) error {
	if err := write(io.Discard); err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	return c.request(ctx, "learn", func() error {
		c.learnt = append(c.learnt, o.Image)
		if o.Walked != "" {
			c.service.WalkedRoots[o.Walked] = true
		}
		return nil
	})
}

// Recall tells whether a walk has left a list.
func (c *fakeComparer) Recall(ctx context.Context, walked string) (list []byte, err error) {
	err = c.request(ctx, "recall", func() error {
		if c.service.WalkedRoots[walked] {
			list = []byte(walked)
		}
		return nil
	})
	return list, err
}

// WalkRoot starts a worker that reads the files of a container: one, unless it is known.
func (v *FakeVolumes) WalkRoot(ctx context.Context, o volumebackup.WalkOptions, _ volumebackup.Progress) (walked volumebackup.Walked, err error) {
	journal := map[string]string{volumebackup.LabelPurpose: "walk", labels.Prefix + "worker.frozen": "null"}
	w, err := v.launch(ctx, "", journal, nil, true)
	if err != nil {
		return volumebackup.Walked{}, err
	}
	err = w.request(ctx, "walk", func() error {
		if v.docker.FindContainer(o.Container) == nil {
			return fmt.Errorf("no container %s: %w", o.Container, cerrdefs.ErrNotFound)
		}
		walked = volumebackup.Walked{Mounts: v.WalkedMounts, Files: 1}
		if len(o.Known) == 0 {
			walked.Read = 1
		}
		return nil
	})
	return walked, errors.Join(err, w.Close())
}
