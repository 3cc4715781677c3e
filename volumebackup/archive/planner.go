//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/exclude"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
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
	spare    *spare
	compares *errgroup.Group // files that have to be read
	hasher

	mu   sync.Mutex // what several compares share
	plan plan
	held int64 // bytes of memory, about, of what is kept until the plan has been carried out
}

// makePlan finds out what has to be done. A damaged head only makes it slower.
func (r *restore) makePlan(ctx context.Context) error {
	head, err := r.store.OpenHead(r.Mount.Key)
	if err == nil {
		err = r.planAgainst(ctx, head)
	}
	if isDamage(err) {
		r.counter.Files.Store(0)
		r.counter.Bytes.Store(0)
		err = r.planAgainst(ctx, nil) // damage of the manifest shows again
	}
	return err
}

// planAgainst makes the plan with a head, which it closes, or without one.
func (r *restore) planAgainst(ctx context.Context, head *store.Manifest) error {
	p := &planner{restore: r, head: newCursor(head), links: newLinkPlan(), hasher: hasher{counter: r.counter}}
	defer func() { p.head.close() }()
	m, err := r.manifest()
	if err != nil {
		return err
	}
	p.manifest = newCursor(m)
	defer func() { p.manifest.close() }()
	r.summary = m.Summary()
	if p.spare, err = r.newSpare(); err != nil {
		return err
	}
	defer p.spare.kept.close()
	if head != nil {
		p.fingerprints, _ = r.store.FingerprintKey() // without its key everything is hashed
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
	p.restore.counter.Files.Add(1)
	verdict, err := p.spare.decide(f)
	if err := errors.Join(err, p.createBefore(&f.path), p.checkHeld()); err != nil {
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
		return p.extra(f, verdict)
	}
	ordinal := p.take()
	if f.mount {
		return p.leaveMount(f, e)
	}
	return p.both(f, e, base, ordinal)
}

// take goes on to the next entry of the manifest, and returns the place of the present one.
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
		if e == nil || path != nil && manifest.Compare(e.Path, *path) >= 0 {
			return nil
		}
		if err := errors.Join(p.create(e, p.take()), p.checkHeld()); err != nil {
			return err
		}
	}
}

// create plans an entry that is missing.
func (p *planner) create(e *manifest.Entry, ordinal int64) error {
	at := p.enter(e, ordinal)
	if at.alone {
		if at.self != nil {
			at.self.missing = true
		}
		return nil
	}
	if err := p.makeWay(e); err != nil {
		return err
	}
	at.plan()
	at.parent.touch()
	if e.Kind == manifest.Directory {
		// It is kept until its times are set, of its path only the name.
		p.hold(footprint(e) - len(manifest.Parent(e.Path)))
	}
	if e.Shared || e.Kind == manifest.HardLink {
		p.addLink(&linked{entry: e, slot: at})
		return nil
	}
	p.addStep(step{ordinal: ordinal, action: actCreate}, Created, dataLength(e))
	return nil
}

// extra plans what becomes of an entry that the manifest does not have.
func (p *planner) extra(f *found, verdict exclude.Verdict) error {
	if verdict == exclude.Take && !p.Chosen.has(f.path) {
		verdict = exclude.Search // what is in it may have been chosen
	}
	switch verdict {
	case exclude.LeaveOut:
		if err := p.spare.hold(f.path); err != nil {
			return err
		}
		return errLeaveOut
	case exclude.Search:
		return p.spare.hold(f.path)
	default:
		return p.remove(f)
	}
}

// remove plans the deletion of an entry that the manifest does not have.
func (p *planner) remove(f *found) error {
	if f.mount {
		return fmt.Errorf("delete %q: something is mounted there: %w", f.path, errdefs.ErrConflict)
	}
	p.parentOf(f.path).touch()
	p.links.seen(f)
	p.plan.deletes.add(f.path)
	p.spare.deleted(f.path, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.changes.add(Deleted, regularSize(f))
	return nil
}

func regularSize(f *found) int64 {
	if f.stat.Mode&unix.S_IFMT == unix.S_IFREG {
		return f.stat.Size
	}
	return 0
}

// leaveMount leaves a directory alone on which something is mounted.
func (p *planner) leaveMount(f *found, e *manifest.Entry) error {
	if e.Kind != manifest.Directory {
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
func (p *planner) both(f *found, e *manifest.Entry, base *manifest.Entry, ordinal int64) error {
	at := p.enter(e, ordinal)
	isDir := f.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	isLinked := e.Kind == manifest.HardLink || e.Shared || !isDir && f.stat.Nlink > 1
	if at.alone && (isDir || !isLinked) {
		if at.self != nil {
			at.self.blocked = !isDir
		}
		return nil
	}
	s, err := p.see(f, base)
	if err != nil {
		return err
	}
	if f.path == "" {
		p.plan.plain = s.stat.Mode&unix.S_ISGID == 0 && len(s.xattrs) == 0
	}
	if s.kind == manifest.Directory && e.Kind != manifest.Directory {
		p.plan.deletes.add(s.path) // now, as what is in it comes next
		p.spare.deleted(f.path, e)
		at.parent.touch()
		p.addLink(&linked{entry: e, slot: at, change: Changed})
		return nil
	}
	if isLinked {
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
func (p *planner) replace(s *seen, e *manifest.Entry, at slot) {
	at.parent.touch()
	at.plan()
	p.plan.deletes.add(s.path)
	p.addStep(step{ordinal: at.ordinal, action: actCreate}, Changed, dataLength(e))
}

// keep plans the changes to an entry that stays the same file.
func (p *planner) keep(s *seen, e *manifest.Entry, at slot) {
	adjust := !s.sameAttributes(e)
	if e.Kind == manifest.Regular && !s.known {
		p.compares.Go(func() error { return p.compare(s, e, at.ordinal, adjust) })
		return
	}
	if e.Kind == manifest.Regular {
		d := differ(e, s.base)
		p.planContent(s, e, at.ordinal, adjust, d)
		return
	}
	if adjust {
		at.plan()
		p.addStep(step{ordinal: at.ordinal, action: actAdjust}, Changed, 0)
	}
}

// planContent plans the changes to a file's content.
func (p *planner) planContent(s *seen, e *manifest.Entry, ordinal int64, adjust bool, d difference) {
	switch {
	case len(d.pieces) > 0 || d.holes || s.stat.Size != e.Size:
		var bytes int64
		for _, i := range d.pieces {
			bytes += int64(e.Pieces[i].Length)
		}
		p.addStep(step{ordinal: ordinal, action: actUpdate, pieces: d.pieces, holes: d.holes}, Changed, bytes)
	case adjust:
		p.addStep(step{ordinal: ordinal, action: actAdjust}, Changed, 0)
	}
}

func (p *planner) addStep(s step, kind ChangeKind, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.steps = append(p.plan.steps, s)
	p.held += int64(unsafe.Sizeof(s)) + int64(len(s.pieces))*int64(unsafe.Sizeof(int32(0)))
	p.plan.changes.add(kind, bytes)
}

// finish adds the directories whose times have to be put back.
func (p *planner) finish() {
	for _, d := range p.dirs {
		if d.touched && !d.planned && !d.alone {
			p.plan.steps = append(p.plan.steps, step{ordinal: d.ordinal, action: actTouch})
		}
	}
	p.plan.sort()
	p.plan.spare(p.spare.holders)
	p.plan.fresh = p.count == 1
	p.plan.hasHead = p.head.reader != nil
}

// dataLength is how many bytes of a file are stored.
func dataLength(e *manifest.Entry) int64 {
	var n int64
	for i := range e.Pieces {
		n += int64(e.Pieces[i].Length)
	}
	return n
}
