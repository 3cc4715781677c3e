//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

const (
	// rootReaders is how many files of a root filesystem are read at a time.
	rootReaders = 4

	// maxRootEntries bounds the list of a root filesystem, which is kept in memory until it is written.
	maxRootEntries = 1 << 20
)

// RootOptions say how a root filesystem is walked.
type RootOptions struct {
	Path string // of its directory
	// Known is a list that an earlier walk over a container of the same image has written. Empty: there is none.
	Known []byte
	// Created is when the container was made, in seconds since 1970. What has not changed since then is the image's, so
	// nobody writes to it.
	Created int64
}

// RootWalk says what a walk over a root filesystem has found.
type RootWalk struct {
	Mounts []string // where something is mounted, sorted. These places are not in the list
	Files  int64    // regular files
	Read   int64    // how many of them were read
}

// WalkRoot writes to out the list of what a root filesystem holds: what [changes.FromTar] would write of its export. It
// leaves out places where something is mounted. Files that the known list has are not read, if they are the image's.
func WalkRoot(ctx context.Context, o RootOptions, out io.Writer, counter *Counter) (RootWalk, error) {
	known, err := openKnownRoot(o.Known)
	if err != nil {
		return RootWalk{}, err
	}
	defer known.close()
	t, err := openTree(o.Path)
	if err != nil {
		return RootWalk{}, err
	}
	defer t.close() //nolint:errcheck // it was only read
	w := &rootWalk{
		tree: t, known: known, created: o.Created, counter: counter,
		list: changes.NewRootList(), names: map[uint64]string{}, unread: make(chan *manifest.Entry, 2*rootReaders),
	}
	if err := w.run(ctx); err != nil {
		return RootWalk{}, fmt.Errorf("walk root filesystem: %w", err)
	}
	return w.found, w.list.Write(out)
}

// rootWalk is a walk under way. One goroutine walks, others read.
type rootWalk struct {
	tree    *tree
	known   *knownRoot
	created int64
	counter *Counter
	list    *changes.RootList
	names   map[uint64]string // the first name of each file that has several, by inode
	unread  chan *manifest.Entry
	read    atomic.Int64
	found   RootWalk
}

func (w *rootWalk) run(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	gone := make([][]string, rootReaders)
	for n := range rootReaders {
		work.Go(func() (err error) {
			gone[n], err = w.readAll(ctx)
			return err
		})
	}
	work.Go(func() error {
		defer close(w.unread)
		return w.tree.walk(ctx, func(f *found) error { return w.visit(ctx, f) })
	})
	if err := work.Wait(); err != nil {
		return err
	}
	for _, path := range slices.Concat(gone...) {
		w.list.Remove(path)
	}
	w.found.Read = w.read.Load()
	return nil
}

// visit takes what the walk has found.
func (w *rootWalk) visit(ctx context.Context, f *found) error {
	kind, known := kindOf(f.stat.Mode)
	switch {
	case changes.IsOfEngine(f.path):
		return errLeaveOut
	case f.mount:
		w.found.Mounts = append(w.found.Mounts, f.path)
		return nil
	case !known || kind == manifest.Socket: // an export has none
		return nil
	case w.list.Len() >= maxRootEntries:
		return fmt.Errorf("it has more than %d entries: %w", maxRootEntries, errdefs.ErrOutOfRange)
	}
	w.counter.Files.Add(1)
	if isShared(kind, &f.stat) {
		if first, further := w.names[f.stat.Ino]; further {
			w.list.Link(f.path, first)
			return nil
		}
		w.names[f.stat.Ino] = f.path
	}
	e := &manifest.Entry{Path: f.path, Kind: kind}
	base, err := w.known.seek(f.path)
	if err != nil {
		return err
	}
	if err := w.describe(e, base, f); err != nil {
		if vanished(err) {
			return nil
		}
		return err
	}
	if f.path == "" { // an export does not tell of the root itself
		return nil
	}
	w.list.Add(e)
	return w.hand(ctx, e)
}

// hand gives a file whose content is not known to whoever reads it.
func (w *rootWalk) hand(ctx context.Context, e *manifest.Entry) error {
	if e.Kind != manifest.Regular {
		return nil
	}
	w.found.Files++
	if e.Size == 0 || len(e.Pieces) > 0 {
		return nil
	}
	select {
	case w.unread <- e:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// describe gives an entry its attributes, and its content if that is known.
func (w *rootWalk) describe(e, base *manifest.Entry, f *found) error {
	setRootStat(e, &f.stat)
	if !w.isOfImage(&f.stat) {
		e.Cached = manifest.Cached{}
	} else if isKnownRoot(base, e) {
		e.Xattrs, e.Target, e.Pieces = base.Xattrs, base.Target, base.Pieces
		return nil
	}
	var err error
	if e.Kind == manifest.Symlink {
		if e.Target, err = readLink(f.dir, f.name); err != nil {
			return pathError("read symlink", f.path, err)
		}
	}
	if e.Kind == manifest.Regular && e.Size > 0 {
		return nil // who reads it reads them, too
	}
	if e.Xattrs, err = exportedXattrs(pathXattrs(f.dir, f.name)); err != nil {
		return pathError("read xattrs of", f.path, err)
	}
	return nil
}

// isOfImage tells whether nobody has changed a file since the container was made. On an overlay filesystem such a file is
// in a layer of the image: whoever wants to write to it gets a copy, which is new.
func (w *rootWalk) isOfImage(st *unix.Stat_t) bool {
	return int64(st.Ctim.Sec) < w.created-int64(coarse.Seconds()) //nolint:unconvert // narrower on 32 bits
}

// readAll reads files until there are no more. It returns those that have vanished.
func (w *rootWalk) readAll(ctx context.Context) (gone []string, err error) {
	var buffer []byte
	for e := range w.unread {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if buffer == nil {
			buffer = make([]byte, rootBuffer)
		}
		err := w.readFile(ctx, e, buffer)
		switch {
		case err != nil && vanished(err):
			gone = append(gone, e.Path)
		case err != nil:
			return nil, pathError("read", e.Path, err)
		}
	}
	return gone, nil
}

// readFile reads a file of which only the attributes are known. The attributes become those that it has when it is read.
func (w *rootWalk) readFile(ctx context.Context, e *manifest.Entry, buffer []byte) error {
	fd, err := w.tree.openFile(e.Path)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return err
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.ESTALE
	}
	setRootStat(e, &before)
	if e.Xattrs, err = exportedXattrs(fileXattrs(fd)); err != nil {
		return err
	}
	if err := w.hash(ctx, fd, e, buffer); err != nil {
		return err
	}
	if err := unix.Fstat(fd, &after); err != nil {
		return err
	}
	w.read.Add(1)
	// A file of the image that somebody begins to write to meanwhile shows what its copy holds.
	if !w.isOfImage(&before) || before.Ctim != after.Ctim || before.Ino != after.Ino {
		e.Cached = manifest.Cached{}
	}
	return nil
}

func (w *rootWalk) hash(ctx context.Context, fd int, e *manifest.Entry, buffer []byte) error {
	for at := int64(0); at < e.Size; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		piece, err := sumPiece(fd, at, min(e.Size-at, manifest.MaxPiece), buffer)
		if err != nil {
			return err
		}
		w.counter.Bytes.Add(int64(piece.Length))
		if piece.Length > 0 {
			e.Pieces = append(e.Pieces, piece)
		}
		if at = piece.End(); int64(piece.Length) < manifest.MaxPiece && at < e.Size { // it was cut off meanwhile
			e.Size = at
		}
	}
	return nil
}

// errNoRoot says that a directory is not the root filesystem of a container, or not one that can be walked.
var errNoRoot = fmt.Errorf("it cannot be walked: %w", errdefs.ErrNotImplemented)

// CheckRoot fails if what is at a path is not the whole root filesystem of a container, on an overlay filesystem: a
// process may have changed its root.
func CheckRoot(path string) error {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, 0, &st)
	if err != nil {
		return pathError("stat", path, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return pathError("stat filesystem of", path, err)
	}
	if st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 || uint32(fs.Type) != unix.OVERLAYFS_SUPER_MAGIC {
		return errNoRoot
	}
	if err := unix.Lstat(path+"/.dockerenv", &unix.Stat_t{}); err != nil {
		return errors.Join(errNoRoot, err)
	}
	return nil
}
