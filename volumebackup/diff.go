package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// FileChange is what happened to one entry of a volume or a root filesystem.
type FileChange = protocol.FileChange

// ArchiveRef names an archive. Root is what the snapshot's labels say of it.
type ArchiveRef = protocol.ArchiveRef

// ComparedTree is a tree of files: an archive, a volume as it is now, or a root filesystem. Without any of them it is empty.
type ComparedTree struct {
	Archive *ArchiveRef
	Volume  string
	// Excluded says what of the volume is not looked at.
	Excluded *labels.Exclusions
	Afresh   bool   // every file of the volume is read, also if the store knows what it holds
	Image    string // the key of a root filesystem
}

// CompareOptions say what is to be compared.
type CompareOptions struct {
	Purpose string   // for people
	Volumes []string // that are looked at as they are now
	Learns  bool     // it may be told of root filesystems, which the store keeps
}

// Comparer compares trees of files. It changes no volume. Close ends it.
type Comparer struct {
	session *session
	volumes []string
}

// OpenComparer starts a worker that compares trees.
func (s *Service) OpenComparer(ctx context.Context, o CompareOptions, p Progress) (*Comparer, error) {
	j := job{purpose: o.Purpose, rights: toCompare}
	if len(o.Volumes) == 0 {
		j.rights = toLook
	}
	if o.Learns {
		j.rights.writesStore, j.rights.makesStore = true, true
	}
	for i, name := range o.Volumes {
		j.mounts = append(j.mounts, Mount{Number: i, Volume: name, ReadOnly: true})
	}
	session, err := s.start(ctx, j, p)
	if err != nil {
		return nil, err
	}
	return &Comparer{session: session, volumes: o.Volumes}, nil
}

// Close ends the worker and removes it.
func (c *Comparer) Close() error { return c.session.Close() }

// Diff hands to visit what has to happen to one tree to make another one of it, sorted by path.
func (c *Comparer) Diff(ctx context.Context, old, now ComparedTree, visit func(FileChange)) error {
	err := c.session.client.Diff(ctx, protocol.DiffRequest{Old: c.tree(old), New: c.tree(now)}, visit, c.session.emit)
	if err != nil {
		return fmt.Errorf("compare files: %w", c.session.explain(err))
	}
	return nil
}

func (c *Comparer) tree(t ComparedTree) protocol.Tree {
	if t.Volume == "" {
		return protocol.Tree{Archive: t.Archive, Image: t.Image}
	}
	return protocol.Tree{Mount: &protocol.Mount{Number: slices.Index(c.volumes, t.Volume), Key: t.Volume, Excluded: t.Excluded}, Afresh: t.Afresh}
}

// Known tells which of these root filesystems the store knows.
func (c *Comparer) Known(ctx context.Context, images []string) ([]string, error) {
	known, err := c.session.client.Known(ctx, images)
	if err != nil {
		return nil, fmt.Errorf("look up root filesystems in store: %w", c.session.explain(err))
	}
	return known, nil
}

// Learn tells the worker what a root filesystem holds: write writes its manifest. The store keeps it, if keep is set.
func (c *Comparer) Learn(ctx context.Context, image string, keep bool, write func(io.Writer) error) error {
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(out)
		_ = out.CloseWithError(err) // a pipe takes any error
		written <- err
	}()
	err := c.session.client.Learn(ctx, protocol.LearnRequest{Image: image, Keep: keep}, in, c.session.emit)
	_ = in.CloseWithError(err)
	if writeErr := <-written; writeErr != nil && (err == nil || !errors.Is(err, writeErr)) {
		err = errors.Join(writeErr, err)
	}
	if err != nil {
		return fmt.Errorf("keep what is known of a root filesystem: %w", c.session.explain(err))
	}
	return nil
}
