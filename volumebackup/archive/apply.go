//go:build linux

package archive

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

const (
	// taskPieces is how many pieces of a large file one goroutine writes at a time.
	taskPieces = 8

	// taskFiles is how many entries are handed over at a time. They are of one directory: goroutines that make files
	// in the same directory only wait for each other.
	taskFiles = 256
)

// applier carries out a plan: deletions; then directories, in order, while several
// goroutines fill them; then further names of files; at last the attributes of directories.
type applier struct {
	*restore
	tasks chan []task
	batch []task
	dirs  []*manifest.Entry // without their paths
	paths pathList          // of dirs
	links []*manifest.Entry
	open  openFiles
	at    place // the walker's own
}

// task is an entry to make or change, or some pieces of a large one.
type task struct {
	entry  *manifest.Entry
	step   step
	file   *targetFile
	pieces []manifest.Piece
}

// targetFile is a large file that several tasks fill; the last one finishes it. The kernel lets one goroutine write to a
// file at a time and has the others spin, so they wait for each other here instead.
type targetFile struct {
	fd    int
	tasks atomic.Int64
	write sync.Mutex
}

func (r *restore) apply(ctx context.Context) error {
	a := &applier{restore: r, tasks: make(chan []task, batchesAhead), at: newPlace(r.tree)}
	defer a.at.close()
	if err := a.delete(ctx); err != nil {
		return err
	}
	group, working := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) + 1 {
		group.Go(func() error { return a.work(working) })
	}
	group.Go(func() error {
		defer close(a.tasks)
		if err := r.eachStep(func(e *manifest.Entry, s *step) error { return a.begin(working, e, s) }); err != nil {
			return err
		}
		return a.send(working)
	})
	err := group.Wait()
	a.open.closeAll()
	if err != nil {
		return err
	}
	return a.end(ctx)
}

// delete removes what the archive does not have, children before parents.
func (a *applier) delete(ctx context.Context) error {
	return a.plan.deletes.backward(func(path string) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if a.plan.spared[path] {
			return nil
		}
		if err := a.at.remove(path); err != nil {
			return pathError("delete", path, err)
		}
		return nil
	})
}

// begin makes a directory, or hands anything else to a goroutine.
func (a *applier) begin(ctx context.Context, e *manifest.Entry, s *step) error {
	switch {
	case e.Kind == manifest.Directory:
		return a.beginDirectory(e, s)
	case e.Kind == manifest.HardLink:
		a.links = append(a.links, e)
		return nil
	case e.Kind == manifest.Regular && len(e.Pieces) > taskPieces && s.action != actAdjust:
		return a.beginLarge(ctx, e, s)
	}
	if n := len(a.batch); n >= taskFiles || n > 0 && manifest.Parent(a.batch[n-1].entry.Path) != manifest.Parent(e.Path) {
		if err := a.send(ctx); err != nil {
			return err
		}
	}
	a.batch = append(a.batch, task{entry: e, step: *s, pieces: s.needed(e)})
	return nil
}

func (a *applier) send(ctx context.Context) error {
	if len(a.batch) == 0 {
		return nil
	}
	select {
	case a.tasks <- a.batch:
		a.batch = nil
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// beginDirectory makes a directory, if it has to be made, and notes it for end, which sets the attributes.
func (a *applier) beginDirectory(e *manifest.Entry, s *step) error {
	if s.action == actCreate {
		if err := a.makeDirectory(e); err != nil {
			return err
		}
	}
	a.paths.add(e.Path)
	e.Path = ""
	a.dirs = append(a.dirs, e)
	return nil
}

func (a *applier) makeDirectory(e *manifest.Entry) error {
	dir, name, err := a.at.holder(e.Path)
	if err == nil {
		err = unix.Mkdirat(dir, name, 0o700)
	}
	if err != nil {
		return pathError("create directory", e.Path, err)
	}
	a.counter.Files.Add(1)
	return nil
}

// beginLarge opens a file and divides its pieces among tasks.
func (a *applier) beginLarge(ctx context.Context, e *manifest.Entry, s *step) error {
	fd, err := a.openFile(&a.at, e, s)
	if err != nil {
		return pathError("write", e.Path, err)
	}
	a.open.add(fd)
	file := &targetFile{fd: fd}
	pieces := s.needed(e)
	count := max(1, (len(pieces)+taskPieces-1)/taskPieces)
	file.tasks.Store(int64(count))
	for range count {
		n := min(taskPieces, len(pieces))
		a.batch = append(a.batch, task{entry: e, step: *s, file: file, pieces: pieces[:n]})
		pieces = pieces[n:]
		if err := a.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end makes further names, then sets the attributes of directories: nothing changes them any more from then on.
func (a *applier) end(ctx context.Context) error {
	for _, e := range a.links {
		if err := a.makeLink(e); err != nil {
			return pathError("link", e.Path, err)
		}
	}
	for n, e := range slices.Backward(a.dirs) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		e.Path = a.paths.path(n)
		if err := a.finishDirectory(e); err != nil {
			return pathError("set attributes of", e.Path, err)
		}
		e.Path = ""
	}
	return nil
}

func (a *applier) makeLink(e *manifest.Entry) error {
	fromDir, fromName, err := a.at.holder(e.Target)
	if err != nil {
		return err
	}
	other := newPlace(a.tree)
	defer other.close()
	toDir, toName, err := other.holder(e.Path)
	if err != nil {
		return err
	}
	err = unix.Linkat(fromDir, fromName, toDir, toName, 0)
	if _, ok := a.inexact[e.Target]; ok && errors.Is(err, unix.ENOENT) {
		a.skip(e.Path, "link to "+e.Target, err)
		return nil
	}
	a.counter.Files.Add(1)
	return err
}

func (a *applier) finishDirectory(e *manifest.Entry) error {
	dir, name, err := a.at.holder(e.Path)
	if err != nil {
		return err
	}
	return a.setAttributes(dir, name, -1, e, false)
}

// work carries out tasks.
func (a *applier) work(ctx context.Context) error {
	at := newPlace(a.tree)
	defer at.close()
	var buffer store.Buffer
	for batch := range a.tasks {
		for i := range batch {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := a.perform(&batch[i], &at, &buffer); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) perform(t *task, at *place, buffer *store.Buffer) error {
	e := t.entry
	var err error
	switch {
	case t.step.action == actAdjust:
		err = a.adjust(at, e)
	case e.Kind == manifest.Regular:
		err = a.fill(t, at, buffer)
	default:
		err = a.makeSpecial(at, e)
	}
	if err != nil {
		if isDamage(err) {
			return err
		}
		return pathError("restore", e.Path, err)
	}
	return nil
}

func (a *applier) adjust(at *place, e *manifest.Entry) error {
	dir, name, err := at.holder(e.Path)
	if err != nil {
		return err
	}
	a.counter.Files.Add(1)
	return a.setAttributes(dir, name, -1, e, false)
}
