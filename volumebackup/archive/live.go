//go:build linux

package archive

import (
	"context"
	"errors"
	"io"
	"iter"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/exclude"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// liveTree is what a volume holds now, as entries of a manifest. The content of a file is read only when it is asked for,
// and not at all if the head knows it.
type liveTree struct {
	hasher
	ctx    context.Context //nolint:containedctx // a comparison is one call
	tree   *tree
	warner *warner
	head   cursor
	links  map[uint64]string // the first name of each file that has several, by inode
	next   func() (*manifest.Entry, error, bool)
	stop   func()
	filter filter
	kept   kept // the filter asks it
	search searched
	last   unread                     // the entry that was looked at last
	shared map[*manifest.Entry]unread // those that have several names
}

// unread is a file without its content.
type unread struct {
	entry *manifest.Entry // nil: there is none
	stat  unix.Stat_t
	known []manifest.Piece // what the head has of it
}

var _ changes.Tree = (*liveTree)(nil)

// openLive begins to look at a volume. What is opened must be closed.
// Afresh has every file read.
func openLive(ctx context.Context, s *store.Store, mount Mount, afresh bool, reporter Reporter, counter *Counter) (*liveTree, error) {
	t, err := openTree(mount.Path)
	if err != nil {
		return nil, err
	}
	keeps, err := openKept(s, mount.Excluded)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	var head *store.Manifest
	if !afresh {
		if head, err = openWholeHead(s, mount.Key); err != nil {
			keeps.close()
			return nil, errors.Join(err, t.close())
		}
	}
	l := &liveTree{
		ctx: ctx, tree: t, kept: keeps, warner: &warner{reporter: reporter, mount: mount.Number}, head: newCursor(head), links: map[uint64]string{},
		shared: map[*manifest.Entry]unread{}, hasher: hasher{counter: counter},
	}
	l.filter = newFilter(mount.Excluded, keeps.has, func(path string) { l.warner.warn(path, tooLongGitignore) })
	if head != nil {
		l.fingerprints, _ = s.FingerprintKey() // without its key everything is hashed
	}
	l.next, l.stop = iter.Pull2(l.entries)
	return l, nil
}

// openWholeHead opens the head of a volume, or returns nil if there is none. Changes are told as they are found, so a head
// is not believed before it was read to its end.
func openWholeHead(s *store.Store, key string) (*store.Manifest, error) {
	head, err := s.OpenHead(key)
	if err == nil && head != nil {
		err = head.Each(func(*manifest.Entry) error { return nil })
		head.Close()
		if err == nil {
			head, err = s.OpenHead(key)
		}
	}
	if isDamage(err) {
		return nil, nil //nolint:nilnil // without a head everything is read
	}
	return head, err
}

func (l *liveTree) close() error {
	l.stop()
	l.kept.close()
	l.head.close()
	return l.tree.close()
}

// errStopped ends a walk whose entries nobody wants any more.
var errStopped = errors.New("nobody wants more entries")

// entries walks the volume.
func (l *liveTree) entries(yield func(*manifest.Entry, error) bool) {
	err := l.tree.walkReadable(l.ctx, func(f *found) error {
		items, err := l.visit(f)
		for _, it := range items {
			if !yield(it.entry, nil) {
				return errStopped
			}
		}
		return err
	}, func(path string, _ bool) { l.warner.warn(path, "left out: it may not be read") })
	if err != nil && !errors.Is(err, errStopped) {
		yield(nil, err)
	}
}

// visit returns what a backup would archive of what the walk has found, with the directories that were held back until then.
func (l *liveTree) visit(f *found) ([]*item, error) {
	verdict, err := l.filter.decide(f)
	if err != nil {
		return nil, err
	}
	if verdict == exclude.LeaveOut {
		return nil, errLeaveOut
	}
	l.search.now = verdict == exclude.Search
	l.counter.Files.Add(1)
	e, err := l.entry(f)
	switch {
	case err != nil && vanished(err), err == nil && e == nil:
		return nil, nil
	case err != nil && denied(err):
		l.warner.warn(f.path, "left out: "+err.Error())
		return nil, nil
	case err != nil:
		return nil, err
	}
	return l.search.add(&item{entry: e}), nil
}

// Next implements changes.Tree.
func (l *liveTree) Next() (*manifest.Entry, error) {
	e, err, more := l.next()
	if !more {
		return nil, io.EOF
	}
	return e, err
}

// entry describes what was found; nil if it is nothing that can be archived.
func (l *liveTree) entry(f *found) (*manifest.Entry, error) {
	kind, ok := kindOf(f.stat.Mode)
	if !ok || f.mount && kind != manifest.Directory {
		return nil, nil //nolint:nilnil // a backup leaves it out, too
	}
	if first, further := l.links[f.stat.Ino]; further && isShared(kind, &f.stat) {
		return &manifest.Entry{Path: f.path, Kind: manifest.HardLink, Target: first}, nil
	}
	l.last = unread{}
	e := &manifest.Entry{Path: f.path, Kind: kind}
	setStat(e, &f.stat)
	if e.Shared {
		l.links[f.stat.Ino] = f.path
	}
	base, err := l.head.seek(f.path)
	if err != nil {
		return nil, err
	}
	if isClean(base, kind, &f.stat) {
		e.Xattrs, e.Target, e.Holes, e.Pieces = base.Xattrs, base.Target, base.Holes, base.Pieces
		return e, nil
	}
	if e.Xattrs, err = readXattrs(pathXattrs(f.dir, f.name)); err != nil {
		return nil, pathError("read xattrs of", f.path, err)
	}
	if kind == manifest.Symlink {
		if e.Target, err = readLink(f.dir, f.name); err != nil {
			return nil, pathError("read symlink", f.path, err)
		}
	}
	l.remember(e, base, &f.stat)
	return e, nil
}

// remember keeps what it takes to read a file later.
func (l *liveTree) remember(e, base *manifest.Entry, st *unix.Stat_t) {
	if e.Kind != manifest.Regular {
		return
	}
	l.last = unread{entry: e, stat: *st}
	if base != nil {
		l.last.known = base.Pieces
	}
	if e.Shared {
		l.shared[e] = l.last
	}
}

// Read implements changes.Tree. A file that has vanished has no content.
func (l *liveTree) Read(e *manifest.Entry) error {
	file := l.last
	if e.Shared {
		file = l.shared[e]
		delete(l.shared, e)
	}
	if file.entry != e {
		return nil // the head knows it
	}
	fd, err := l.tree.openFile(e.Path)
	if err == nil {
		err = errors.Join(layout(fd, e, isSparse(&file.stat)), l.hashPieces(l.ctx, fd, e, file.known))
		closeFD(fd)
	}
	if err != nil && !vanished(err) {
		return pathError("compare", e.Path, err)
	}
	return nil
}
