//go:build linux

package archive

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// Tree is what a comparison looks at: a manifest, which the comparison closes, or what a volume holds now. Without
// either it is empty.
type Tree struct {
	Manifest *store.Manifest
	Volume   *Mount
	Afresh   bool // read every file of the volume, whatever its head knows
}

// Diff hands to visit what has to happen to the old tree to make of it what is now, sorted by path.
func Diff(
	ctx context.Context, s *store.Store, old, now Tree, reporter Reporter, counter *Counter, visit func(changes.Change) error,
) (err error) {
	before, closeOld, err := old.open(ctx, s, reporter, counter)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeOld()) }()
	after, closeNew, err := now.open(ctx, s, reporter, counter)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeNew()) }()
	return changes.Compare(before, after, func(c changes.Change) error {
		return errors.Join(visit(c), context.Cause(ctx))
	})
}

func (t Tree) open(ctx context.Context, s *store.Store, reporter Reporter, counter *Counter) (changes.Tree, func() error, error) {
	switch {
	case t.Manifest != nil:
		m := &storedTree{ctx: ctx, cursor: newCursor(t.Manifest)}
		return m, m.close, nil
	case t.Volume != nil:
		l, err := openLive(ctx, s, *t.Volume, t.Afresh, reporter, counter)
		if err != nil {
			return nil, nil, err
		}
		return l, l.close, nil
	}
	return nil, func() error { return nil }, nil
}

// storedTree is the tree that a manifest lists.
type storedTree struct {
	ctx    context.Context //nolint:containedctx // a comparison is one call
	cursor cursor
}

// Next implements changes.Tree.
func (t *storedTree) Next() (*manifest.Entry, error) {
	e, err := t.cursor.peek()
	if err == nil {
		err = context.Cause(t.ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, t.cursor.err
	}
	t.cursor.skip()
	return e, nil
}

// Read implements changes.Tree: a manifest has all content.
func (t *storedTree) Read(*manifest.Entry) error { return nil }

func (t *storedTree) close() error {
	t.cursor.close()
	return nil
}
