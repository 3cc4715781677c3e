package volumebackup

import (
	"context"
	"fmt"
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
	// Hidden are places that the tree does not show. Nothing is said of them, and of what is in them.
	Hidden []string
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
	r := protocol.DiffRequest{Old: c.tree(old), New: c.tree(now)}
	for _, place := range slices.Concat(old.Hidden, now.Hidden) {
		r.Hidden = append(r.Hidden, protocol.Path(place))
	}
	err := c.session.client.Diff(ctx, r, visit, c.session.emit)
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
