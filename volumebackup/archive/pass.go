//go:build linux

package archive

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/exclude"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// pass walks a volume once. One goroutine walks and makes batches, several read
// them, and one takes them in order to store what is new.
type pass struct {
	*volume
	mode         Mode
	base         cursor
	index        *store.Index
	pack         *store.PackWriter
	counter      *Counter
	links        map[uint64]string // first name of each file that has several, by inode
	began        unix.Timespec
	fingerprints *manifest.FingerprintKey
	batch        *batch             // being filled
	send         func(*batch) error // hands a batch on that is full
	gone         map[string]string  // entries that are left out, and why; only the writer knows
	large        carried
	open         openFiles
	filter       filter
	search       searched
	store        *store.Store
	isOwn        func(manifest.PackID) bool // that the backup writes
	full         bool                       // the base is compared with, and not believed
	doubted      float64                    // part of what the base knows that is compared all the same
}

// batchesAhead bounds the batches, and so the memory, between walker and writer.
const batchesAhead = 16

func (p *pass) run(ctx context.Context, out *manifest.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	toRead := make(chan *batch, batchesAhead)
	inOrder := make(chan *batch, batchesAhead)
	send := func(b *batch) error {
		for _, to := range []chan<- *batch{inOrder, toRead} {
			if to == toRead && !b.reads {
				break
			}
			select {
			case to <- b:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	group.Go(func() error {
		defer close(toRead)
		defer close(inOrder)
		return p.walk(ctx, send)
	})
	for range runtime.GOMAXPROCS(0) + 1 {
		group.Go(func() error {
			r := newReader(p)
			for b := range toRead {
				if err := r.read(ctx, b); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error { return p.write(ctx, inOrder, out) })
	defer p.open.closeAll()
	return group.Wait()
}

// walk fills batches.
func (p *pass) walk(ctx context.Context, send func(*batch) error) error {
	p.batch, p.send = newBatch(), send
	var err error
	if p.began, err = coarseNow(); err != nil {
		return err
	}
	err = p.tree.walkReadable(ctx, p.observe, p.unreadable)
	if err != nil {
		return err
	}
	// The end of the base says whether what was taken from it can be believed.
	if err := p.base.drain(); err != nil {
		return err
	}
	p.batch.seal()
	return send(p.batch)
}

// unreadable notes what the walk could not look at.
func (p *pass) unreadable(path string, content bool) {
	if content {
		p.notes.warn(path, "what is in it is "+whyDenied)
		return
	}
	p.notes.warn(path, whyDenied)
}

// add hands an entry, or a part of one, to the goroutines that read. It waits if they are behind, so that memory does
// not grow with the files.
func (p *pass) add(it *item) error {
	archived := p.search.add(it)
	if searched := len(archived) - 1; searched > 0 {
		p.excluded -= int64(searched)
	}
	for _, it := range archived {
		if err := p.hand(it); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) hand(it *item) error {
	p.batch.add(it)
	if !p.batch.overflow() {
		return nil
	}
	full := p.batch
	p.batch = newBatch()
	full.seal()
	return p.send(full)
}

// observe decides what becomes of an entry: taken from the base, recorded at once, or read.
func (p *pass) observe(f *found) error {
	if len(f.path) > manifest.MaxPath {
		p.notes.warn(f.path, fmt.Sprintf("left out, with what is in it: a path of %d bytes, of %d at most", len(f.path), manifest.MaxPath))
		return errLeaveOut
	}
	verdict, err := p.filter.decide(f)
	if err != nil {
		return err
	}
	if verdict != exclude.Take {
		p.excluded++
	}
	if verdict == exclude.LeaveOut {
		return errLeaveOut
	}
	p.search.now = verdict == exclude.Search
	base, err := p.base.seek(f.path)
	if err != nil {
		return err
	}
	kind, ok := kindOf(f.stat.Mode)
	if !ok || f.mount && kind != manifest.Directory {
		p.notes.warn(f.path, "left out: it is mounted there, or of a kind that cannot be archived")
		return nil
	}
	if f.mount && f.path != "" {
		p.notes.warn(f.path, "what is mounted there is left out")
	}
	if kind != manifest.Directory && f.stat.Nlink > 1 {
		if first, ok := p.links[f.stat.Ino]; ok {
			return p.add(&item{entry: &manifest.Entry{Path: f.path, Kind: manifest.HardLink, Target: first}})
		}
		p.links[f.stat.Ino] = f.path
	}
	clean := isClean(base, kind, &f.stat)
	switch {
	case p.full && clean:
		return p.record(f, kind, nil, base)
	case p.full:
		return p.record(f, kind, nil, nil)
	case clean:
		return p.skip(f, base)
	default:
		return p.record(f, kind, base, nil)
	}
}

// skip takes an entry from the base.
func (p *pass) skip(f *found, base *manifest.Entry) error {
	it, err := p.compareWith(f, base)
	if err != nil {
		return err
	}
	p.unexpect(base.Size - it.cost)
	return p.add(it)
}

// record makes a new entry. Blocks of a large file are recognized that are as they were in the entry before. Expected
// is what the entry is going to be if the base is right; nil: it is not compared.
func (p *pass) record(f *found, kind manifest.Kind, before, expected *manifest.Entry) error {
	e := &manifest.Entry{Path: f.path, Kind: kind}
	setStat(e, &f.stat)
	e.Cached.Unsettled = isRecent(e.Cached.Changed, p.began)
	if kind == manifest.Regular {
		if e.Size > wholeFile {
			return p.recordLarge(f, e, before, expected)
		}
		return p.add(&item{entry: e, read: true, cost: e.Size, expected: expected})
	}
	if err := p.recordXattrs(e, pathXattrs(f.dir, f.name)); err != nil && !vanished(err) {
		return pathError("read xattrs of", f.path, err)
	}
	it := &item{entry: e, expected: expected}
	if kind == manifest.Symlink {
		var err error
		e.Target, err = readLink(f.dir, f.name)
		if it.leftOut = reasonToSkip(err); it.leftOut == "" && err != nil {
			return pathError("read symlink", f.path, err)
		}
	}
	return p.add(it)
}

// recordXattrs fills in the extended attributes. An entry whose attributes may not be read is recorded without them.
func (p *pass) recordXattrs(e *manifest.Entry, of xattrCalls) error {
	xattrs, err := readXattrs(of)
	if denied(err) {
		p.notes.warn(e.Path, "its extended attributes are "+whyDenied)
		e.Cached.Unsettled = true
		return nil
	}
	e.Xattrs = xattrs
	return err
}

// recordLarge opens a file that several goroutines are to read.
func (p *pass) recordLarge(f *found, e, before, expected *manifest.Entry) error {
	fd, err := openAt(f.dir, f.name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		err = p.prepare(fd, e)
		if err != nil {
			closeFD(fd)
		}
	}
	if why := reasonToSkip(err); why != "" {
		return p.add(&item{entry: e, leftOut: why})
	}
	if err != nil {
		return pathError("read", f.path, err)
	}
	p.open.add(fd)
	large := &openFile{fd: fd}
	if before != nil {
		large.before = before.Pieces
	}
	return p.addLarge(e, expected, large)
}

// addLarge adds an item for each piece of a large file.
func (p *pass) addLarge(e, expected *manifest.Entry, large *openFile) error {
	count := max(len(e.Pieces), 1) // a file that is all hole still is one item
	large.users.Store(int64(count))
	for i := range count {
		it := &item{entry: e, read: true, file: large, from: i, to: min(i+1, len(e.Pieces)), more: i < count-1, expected: expected}
		if len(e.Pieces) > 0 {
			it.cost = int64(e.Pieces[i].Length)
		}
		if err := p.add(it); err != nil {
			return err
		}
	}
	return nil
}

// prepare syncs an open file if it must be, records its attributes as they are
// then, and finds out what there is to read.
func (p *pass) prepare(fd int, e *manifest.Entry) error {
	// Before the sync: a page that is written to while the sync goes on stays
	// writable, so only a file that has not changed since then is settled.
	now, err := coarseNow()
	if err != nil {
		return err
	}
	if p.mode == Live {
		if err := p.writeback.settle(fd); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Ino != e.Cached.Inode || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.ESTALE
	}
	// By now, a further name may have been recorded and be gone again. Then the file is not clean in the next pass.
	shared := e.Shared
	setStat(e, &st)
	e.Shared = e.Shared || shared
	e.Cached.Unsettled = !p.isSettled(fd, e.Cached.Changed, now)
	// Only now, so that a later change of the attributes moves the change time.
	if err := p.recordXattrs(e, fileXattrs(fd)); err != nil {
		return fmt.Errorf("read xattrs: %w", err)
	}
	if err := layout(fd, e, isSparse(&st)); err != nil {
		return err
	}
	p.unexpect(e.Size - dataLength(e))
	return nil
}

// isSettled says that whatever is written to a file after now shows in its times. That is not known of frozen writers,
// who may have dirty pages mapped, and of live ones, who may have a write in flight.
func (p *pass) isSettled(fd int, changed manifest.Timestamp, now unix.Timespec) bool {
	if p.writeback == never || isRecent(changed, now) {
		return false
	}
	if p.mode != Frozen && !mayBeInFlight(changed, now, p.longestWrite) {
		return true
	}
	return p.mode != Live && isClosedForWriting(fd)
}

// unexpect takes bytes off the total that are not going to be read, if there is a total.
func (p *pass) unexpect(bytes int64) {
	if p.base.reader != nil && p.counter.Total.Load() > 0 {
		p.counter.Total.Add(-bytes)
	}
}
