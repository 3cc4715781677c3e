//go:build linux

package archive

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// writeHead records the volume as it is after a restore, so that the next backup and the next restore need not read it.
// If there is no room for a head, there is none; the restore has not failed.
// The head before tells what is known of the entries that the restore has left alone.
func (r *restore) writeHead(ctx context.Context, before *cursor) error {
	m, err := r.manifest()
	if err != nil {
		return err
	}
	writeback, err := writebackOf(r.tree.fd())
	if err != nil {
		m.Close()
		return err
	}
	began, err := coarseNow()
	if err != nil {
		m.Close()
		return err
	}
	h := &header{
		restore: r, began: began, manifest: newCursor(m), before: before, writeback: writeback,
		inodes: map[string]uint64{}, steps: r.plan.steps,
	}
	defer h.manifest.close()
	err = r.store.WriteHead(r.Mount.Key, func(w *manifest.Writer) error {
		return r.tree.walk(ctx, func(f *found) error { return h.visit(f, w) })
	})
	if canceled := context.Cause(ctx); canceled != nil {
		err = canceled
	} else if err != nil {
		r.warner.reporter.Warn(r.Mount.Number, "", fmt.Sprintf("the next snapshot reads everything: %v", err))
		err = nil
	}
	return err
}

// header pairs the entries of a manifest with those of the volume.
type header struct {
	*restore
	began     unix.Timespec
	manifest  cursor
	before    *cursor
	writeback writeback
	inodes    map[string]uint64 // of files with several names, by the first
	steps     []step            // those that are still ahead
}

func (h *header) visit(f *found, w *manifest.Writer) error {
	e, err := h.manifest.seek(f.path)
	if err != nil {
		return err
	}
	kind, _ := kindOf(f.stat.Mode)
	if !h.Chosen.has(f.path) {
		return h.leave(f, kind, w)
	}
	if e == nil {
		return errLeaveOut // the restore left it alone
	}
	if e.Kind == manifest.HardLink {
		if h.inodes[e.Target] != f.stat.Ino {
			return nil
		}
		return w.Append(e)
	}
	if e.Kind != kind || kind == manifest.Regular && (f.stat.Size != e.Size || timestamp(f.stat.Mtim) != e.Modified) {
		return nil
	}
	if e.Shared {
		h.inodes[e.Path] = f.stat.Ino
	}
	shared := e.Shared
	setStat(e, &f.stat)
	e.Shared = shared
	_, inexact := h.inexact[e.Path]
	e.Cached.Unsettled = inexact || !h.isSettled(f, e)
	return w.Append(e)
}

// leave records what was known before of an entry that the restore has left alone. A file with several names may have
// changed through another one.
func (h *header) leave(f *found, kind manifest.Kind, w *manifest.Writer) error {
	e, err := h.before.seek(f.path)
	if isDamage(err) {
		return nil
	}
	if err != nil || !isClean(e, kind, &f.stat) || e.Shared {
		return err
	}
	return w.Append(e)
}

// isSettled says that whatever is written to an entry from now on shows in its times. What the restore has made is
// settled at once: nobody else has had it, and it is synced. For anything else a write from before the restore may
// still be in flight.
func (h *header) isSettled(f *found, e *manifest.Entry) bool {
	if h.writeback == never || isRecent(e.Cached.Changed, h.began) {
		return false
	}
	return e.Kind != manifest.Regular || h.isMade() || !mayBeInFlight(e.Cached.Changed, h.began, h.longestWrite) || h.isClosed(f)
}

// isMade says that the restore has made the manifest's entry that was looked at last.
func (h *header) isMade() bool {
	ordinal := h.manifest.skipped - 1
	for len(h.steps) > 0 && h.steps[0].ordinal < ordinal {
		h.steps = h.steps[1:]
	}
	return len(h.steps) > 0 && h.steps[0].ordinal == ordinal && h.steps[0].action == actCreate
}

func (h *header) isClosed(f *found) bool {
	fd, err := openAt(f.dir, f.name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer closeFD(fd)
	return isClosedForWriting(fd)
}
