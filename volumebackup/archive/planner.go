//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// planner walks manifest, head and volume in step, and compares.
type planner struct {
	*restore
	ctx      context.Context //nolint:containedctx // a plan is made in one call
	manifest cursor
	head     cursor
	count    int // entries of the volume
	dirs     []*plannedDir
	above    []*plannedDir // directories above the present entry, of the manifest
	entered  string        // the path of the last of them
	links    linkPlan
	compares *errgroup.Group // files that have to be read
	printer  *store.Printer  // nil if there is no head, or no key

	mu   sync.Mutex // what several compares share
	plan plan
	held int64 // bytes of memory, about, of what is kept until the plan has been carried out
}

// maxHeld bounds what a plan takes in memory, which an archive determines: thousands of
// entries take a few bytes in the store. It is enough for some millions of entries that change.
const maxHeld = 1 << 30

// hold counts memory that stays in use. The walk stops when it is too much.
func (p *planner) hold(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held += int64(bytes)
}

func (p *planner) checkHeld() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held > p.maxHeld {
		return fmt.Errorf("plan the restore: what changes takes more than %d MiB of memory, about %d entries so far: %w",
			p.maxHeld>>20, len(p.plan.steps)+len(p.links.entries), errdefs.ErrResourceExhausted)
	}
	return nil
}

// footprint is what an entry takes in memory, about.
func footprint(e *store.Entry) int {
	n := int(unsafe.Sizeof(*e)) + len(e.Path) + len(e.Target) +
		len(e.Holes)*int(unsafe.Sizeof(store.Range{})) + len(e.Pieces)*int(unsafe.Sizeof(store.Piece{}))
	for i := range e.Xattrs {
		n += int(unsafe.Sizeof(e.Xattrs[i])) + len(e.Xattrs[i].Name) + len(e.Xattrs[i].Value)
	}
	return n
}

// plannedDir is a directory of the manifest.
type plannedDir struct {
	length  int // of its path
	ordinal int64
	planned bool // it has a step
	touched bool // something in it is made, replaced or deleted
}

// makePlan finds out what has to be done. A damaged head only makes it slower.
func (r *restore) makePlan(ctx context.Context) error {
	err := r.planAgainst(ctx, true)
	if isDamage(err) {
		r.counter.Files.Store(0)
		r.counter.Bytes.Store(0)
		err = r.planAgainst(ctx, false) // damage of the manifest shows again
	}
	return err
}

func (r *restore) planAgainst(ctx context.Context, useHead bool) error {
	m, err := r.manifest()
	if err != nil {
		return err
	}
	p := &planner{restore: r, manifest: newCursor(m), head: newCursor(nil), links: newLinkPlan()}
	defer func() {
		p.manifest.close()
		p.head.close()
	}()
	r.summary = m.Summary()
	if useHead {
		head, err := r.store.OpenHead(r.Mount.Volume)
		if err != nil {
			return err
		}
		p.head = newCursor(head)
		if head != nil {
			p.printer, _ = r.store.Printer() // without its key everything is hashed
		}
	}
	p.compares, p.ctx = errgroup.WithContext(ctx)
	p.compares.SetLimit(runtime.GOMAXPROCS(0) + 1)
	err = p.walk()
	if compareErr := p.compares.Wait(); err == nil {
		err = compareErr
	}
	if err != nil {
		return err
	}
	p.finish()
	r.plan = &p.plan
	return nil
}

func (p *planner) walk() error {
	err := p.tree.walk(p.ctx, p.visit)
	if err != nil {
		return err
	}
	if err := p.createBefore(nil); err != nil {
		return err
	}
	if err := p.head.drain(); err != nil {
		return err
	}
	return p.planLinks()
}

// visit compares an entry of the volume with the manifest.
func (p *planner) visit(f *found) error {
	p.count++
	p.counter.Files.Add(1)
	if err := errors.Join(p.createBefore(&f.path), p.checkHeld()); err != nil {
		return err
	}
	base, err := p.head.seek(f.path)
	if err != nil {
		return err
	}
	e, err := p.manifest.peek()
	if err != nil {
		return err
	}
	if e == nil || e.Path != f.path {
		return p.remove(f)
	}
	ordinal := p.take()
	if f.mount {
		return p.leaveMount(f, e)
	}
	return p.both(f, e, base, ordinal)
}

// take goes on in the manifest.
func (p *planner) take() int64 {
	p.manifest.skip()
	return p.manifest.skipped - 1
}

// createBefore plans the entries of the manifest that come before a path of the volume, or all that are left.
func (p *planner) createBefore(path *string) error {
	for {
		e, err := p.manifest.peek()
		if err != nil {
			return err
		}
		if e == nil || path != nil && store.Compare(e.Path, *path) >= 0 {
			return nil
		}
		p.create(e, p.take())
		if err := p.checkHeld(); err != nil {
			return err
		}
	}
}

// create plans an entry that is missing.
func (p *planner) create(e *store.Entry, ordinal int64) {
	at := p.enter(e, ordinal)
	at.plan()
	at.parent.touch()
	if e.Kind == store.Directory {
		// It is kept until its times are set, of its path only the name.
		p.hold(footprint(e) - len(store.Parent(e.Path)))
	}
	if e.Shared || e.Kind == store.HardLink {
		p.addLink(&linked{entry: e, slot: at})
		return
	}
	p.addStep(step{ordinal: ordinal, action: actCreate}, Created, e.Path, dataLength(e))
}

// slot is the place of an entry in the manifest and in its directories.
type slot struct {
	ordinal int64
	parent  *plannedDir // nil for the root
	self    *plannedDir // nil unless it is a directory
}

// plan notes that the entry has a step, if it is a directory.
func (s *slot) plan() {
	if s.self != nil {
		s.self.planned = true
	}
}

// enter keeps track of the directories above the present entry.
func (p *planner) enter(e *store.Entry, ordinal int64) slot {
	length := len(store.Parent(e.Path)) // the manifest has the parent, and it came after all that it is not in
	for len(p.above) > 0 && p.above[len(p.above)-1].length > length {
		p.above = p.above[:len(p.above)-1]
	}
	at := slot{ordinal: ordinal}
	if len(p.above) > 0 {
		at.parent = p.above[len(p.above)-1]
	}
	if e.Kind == store.Directory {
		at.self = &plannedDir{length: len(e.Path), ordinal: ordinal}
		p.entered = e.Path
		p.above = append(p.above, at.self)
		p.dirs = append(p.dirs, at.self)
		p.hold(int(unsafe.Sizeof(*at.self)))
	}
	return at
}

// parentOf finds the directory of the manifest that holds a path of the volume; nil if there is none.
func (p *planner) parentOf(path string) *plannedDir {
	parent := store.Parent(path)
	if p.entered != parent && parent != "" && !isIn(p.entered, parent) {
		return nil
	}
	n, ok := slices.BinarySearchFunc(p.above, len(parent), func(d *plannedDir, length int) int { return d.length - length })
	if !ok {
		return nil
	}
	return p.above[n]
}

func (d *plannedDir) touch() {
	if d != nil {
		d.touched = true
	}
}

// remove plans the deletion of an entry that is too much.
func (p *planner) remove(f *found) error {
	if f.mount {
		return fmt.Errorf("delete %q: something is mounted there: %w", f.path, errdefs.ErrConflict)
	}
	p.parentOf(f.path).touch()
	p.links.seen(f)
	p.plan.deletes.add(f.path)
	p.changed(Deleted, f.path, regularSize(f))
	return nil
}

func regularSize(f *found) int64 {
	if f.stat.Mode&unix.S_IFMT == unix.S_IFREG {
		return f.stat.Size
	}
	return 0
}

// leaveMount leaves a directory alone on which something is mounted.
func (p *planner) leaveMount(f *found, e *store.Entry) error {
	if e.Kind != store.Directory {
		return fmt.Errorf("replace %q: something is mounted there: %w", f.path, errdefs.ErrConflict)
	}
	p.enter(e, p.manifest.skipped-1)
	next, err := p.manifest.peek()
	if err != nil {
		return err
	}
	if next != nil && strings.HasPrefix(next.Path, f.path+"/") {
		return fmt.Errorf("restore %q: something is mounted above: %w", next.Path, errdefs.ErrConflict)
	}
	return nil
}

// both plans an entry that is in the manifest and in the volume.
func (p *planner) both(f *found, e *store.Entry, base *store.Entry, ordinal int64) error {
	s, err := p.see(f, base)
	if err != nil {
		return err
	}
	at := p.enter(e, ordinal)
	if f.path == "" {
		p.plan.plain = s.stat.Mode&unix.S_ISGID == 0 && len(s.xattrs) == 0
	}
	if s.kind == store.Directory && e.Kind != store.Directory {
		p.plan.deletes.add(s.path) // now, as what is in it comes next
		at.parent.touch()
		p.addLink(&linked{entry: e, slot: at, change: Changed})
		return nil
	}
	if e.Kind == store.HardLink || e.Shared || s.kind != store.Directory && f.stat.Nlink > 1 {
		p.links.seen(f)
		p.addLink(&linked{entry: e, slot: at, there: s})
		return nil
	}
	if !s.canBecome(e) {
		p.replace(s, e, at)
		return nil
	}
	p.keep(s, e, at)
	return nil
}

// replace plans a deletion and a creation at the same path.
func (p *planner) replace(s *seen, e *store.Entry, at slot) {
	at.parent.touch()
	at.plan()
	p.plan.deletes.add(s.path)
	p.addStep(step{ordinal: at.ordinal, action: actCreate}, Changed, e.Path, dataLength(e))
}

// keep plans what makes an entry right while it stays the same file.
func (p *planner) keep(s *seen, e *store.Entry, at slot) {
	adjust := !s.sameAttributes(e)
	if e.Kind == store.Regular && !s.known {
		p.compares.Go(func() error { return p.compare(s, e, at.ordinal, adjust) })
		return
	}
	if e.Kind == store.Regular {
		d := differ(e, s.base)
		p.planContent(s, e, at.ordinal, adjust, d)
		return
	}
	if adjust {
		at.plan()
		p.addStep(step{ordinal: at.ordinal, action: actAdjust}, Changed, e.Path, 0)
	}
}

// planContent plans what a file's content needs.
func (p *planner) planContent(s *seen, e *store.Entry, ordinal int64, adjust bool, d difference) {
	switch {
	case len(d.pieces) > 0 || d.holes || s.stat.Size != e.Size:
		var bytes int64
		for _, i := range d.pieces {
			bytes += int64(e.Pieces[i].Length)
		}
		p.addStep(step{ordinal: ordinal, action: actUpdate, pieces: d.pieces, holes: d.holes}, Changed, e.Path, bytes)
	case adjust:
		p.addStep(step{ordinal: ordinal, action: actAdjust}, Changed, e.Path, 0)
	}
}

func (p *planner) addStep(s step, kind ChangeKind, path string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.steps = append(p.plan.steps, s)
	p.held += int64(unsafe.Sizeof(s)) + int64(len(s.pieces))*int64(unsafe.Sizeof(int32(0)))
	p.plan.changes.add(kind, path, bytes)
}

func (p *planner) changed(kind ChangeKind, path string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.changes.add(kind, path, bytes)
}

// addLink keeps an entry until all names of every file are known.
func (p *planner) addLink(l *linked) {
	n := int(unsafe.Sizeof(*l)) + footprint(l.entry)
	if s := l.there; s != nil {
		n += int(unsafe.Sizeof(*s))
		if s.base != nil {
			n += footprint(s.base)
		}
	}
	p.hold(n)
	p.links.add(l)
}

// finish adds the directories whose times have to be put back.
func (p *planner) finish() {
	for _, d := range p.dirs {
		if d.touched && !d.planned {
			p.plan.steps = append(p.plan.steps, step{ordinal: d.ordinal, action: actTouch})
		}
	}
	p.plan.sort()
	p.plan.fresh = p.count == 1
	p.plan.hasHead = p.head.reader != nil
}

// dataLength is how many bytes of a file are stored.
func dataLength(e *store.Entry) int64 {
	var n int64
	for i := range e.Pieces {
		n += int64(e.Pieces[i].Length)
	}
	return n
}
