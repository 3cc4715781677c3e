//go:build linux

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Draft is a snapshot that is being made. Nothing of it is visible before it is published.
type Draft struct {
	store    *Store
	id       string
	dir      string
	origin   Origin
	record   map[string]string // labels of the image; empty: none is kept
	archives map[int]*draftArchive
	attached bool // there are attachments
	unlock   func()
}

// draftArchive is what a draft holds of one archive.
type draftArchive struct {
	pack      *PackWriter
	manifests int    // how many were begun; each pass writes one
	finished  string // path of the last one that is complete
	summary   manifest.Summary
	packs     []manifest.PackID // that the manifest refers to
	revised   bool              // a pass has found other content than the one before
}

// Begin starts a snapshot. Until the draft ends, nobody can remove anything from the store.
func (s *Store) Begin(ctx context.Context, id string) (*Draft, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	unlock, err := s.Share(ctx)
	if err != nil {
		return nil, err
	}
	d := &Draft{store: s, id: id, archives: map[int]*draftArchive{}, unlock: unlock}
	if err := d.makeDir(); err != nil {
		unlock()
		return nil, err
	}
	return d, nil
}

func (d *Draft) makeDir() error {
	if _, err := os.Lstat(d.store.path("snapshots", d.id)); err == nil {
		return d.exists()
	}
	for n := range manifest.MaxArchive {
		dir := d.store.path("tmp", d.id+"-"+strconv.Itoa(n))
		err := d.store.disk.may("mkdir", dir)
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if err == nil {
			d.dir = dir
			return nil
		}
		if !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("begin snapshot: %w", err)
		}
	}
	return d.exists()
}

func (d *Draft) exists() error {
	return fmt.Errorf("snapshot %s is in the store already: %w", d.id, errdefs.ErrConflict)
}

func (d *Draft) archive(n int) *draftArchive {
	a, ok := d.archives[n]
	if !ok {
		name := manifest.PackName(d.id, n)
		a = &draftArchive{pack: &PackWriter{
			path: filepath.Join(d.dir, strconv.Itoa(n)+".tar"),
			disk: &d.store.disk, id: d.store.packs.ID(name), name: name,
		}}
		d.archives[n] = a
	}
	return a
}

// Pack is where archive n puts new content; the same one in every pass.
func (d *Draft) Pack(n int) *PackWriter { return d.archive(n).pack }

// IsOwn tells whether a pack is one that the draft itself writes.
func (d *Draft) IsOwn(id manifest.PackID) bool {
	for _, a := range d.archives {
		if a.pack.id == id {
			return true
		}
	}
	return false
}

// HasManifest tells whether a pass over archive n is complete.
func (d *Draft) HasManifest(n int) bool { return d.archive(n).finished != "" }

// Manifest returns the manifest that the last pass over archive n wrote, or nil.
func (d *Draft) Manifest(n int) (*Manifest, error) {
	a := d.archive(n)
	if a.finished == "" {
		return nil, nil //nolint:nilnil // no manifest is no error
	}
	return d.store.openCache(a.finished)
}

// WriteManifest calls write to fill a new manifest for archive n. If all goes well, it replaces the one before.
func (d *Draft) WriteManifest(n int, write func(*manifest.Writer) error) (manifest.Summary, error) {
	if err := checkArchive(n); err != nil {
		return manifest.Summary{}, err
	}
	a := d.archive(n)
	path := filepath.Join(d.dir, fmt.Sprintf("%d.man.%d", n, a.manifests))
	a.manifests++
	var packs []manifest.PackID
	summary, err := d.store.writeManifest(path, func(w *manifest.Writer) error {
		err := write(w)
		packs = w.Packs()
		return err
	})
	if err != nil {
		return manifest.Summary{}, errors.Join(err, d.store.disk.remove(path))
	}
	old := a.finished
	a.revised = a.revised || old != "" && summary.Root != a.summary.Root
	a.finished, a.summary, a.packs = path, summary, packs
	if old != "" {
		if err := d.store.disk.remove(old); err != nil {
			return manifest.Summary{}, fmt.Errorf("write manifest: %w", err)
		}
	}
	return summary, nil
}

// Grown is what archive n takes in the store so far, in bytes. What the last pass
// made superfluous still counts: it is freed when the draft is published.
func (d *Draft) Grown(n int) (int64, error) {
	a := d.archive(n)
	if a.finished == "" {
		return a.pack.offset, nil
	}
	info, err := os.Stat(a.finished)
	if err != nil {
		return 0, fmt.Errorf("look at manifest: %w", err)
	}
	return a.pack.offset + info.Size(), nil
}

// writeManifest writes a manifest to path, without syncing it.
func (s *Store) writeManifest(path string, write func(*manifest.Writer) error) (manifest.Summary, error) {
	f, err := s.disk.create(path)
	if err != nil {
		return manifest.Summary{}, fmt.Errorf("create manifest: %w", err)
	}
	w, err := manifest.NewWriter(f, s.packs)
	if err != nil {
		return manifest.Summary{}, errors.Join(err, f.Close())
	}
	if err := write(w); err != nil {
		return manifest.Summary{}, errors.Join(err, f.Close())
	}
	summary, err := w.Finish()
	return summary, errors.Join(err, f.Close())
}

// Published describes an archive of a new snapshot.
type Published struct {
	manifest.Summary
	Stored int64 // what the store grew by
}

// Publish makes the snapshot durable, then visible, and gives each volume its new head. It fails if a pack of an
// earlier snapshot that the draft refers to is missing or has changed.
func (d *Draft) Publish(volumes map[int]string) (map[int]Published, error) {
	if err := d.checkPacks(); err != nil {
		return nil, err
	}
	published := map[int]Published{}
	for n, a := range d.archives {
		if a.finished == "" {
			return nil, fmt.Errorf("publish archive %d: no pass is complete: %w", n, errdefs.ErrInvalidArgument)
		}
		stored, err := d.finish(n, a)
		if err != nil {
			return nil, fmt.Errorf("publish archive %d: %w", n, err)
		}
		published[n] = Published{Summary: a.summary, Stored: stored}
	}
	if err := errors.Join(d.writeOrigin(), d.writeRecord(), d.syncAttachments()); err != nil {
		return nil, err
	}
	if err := d.reveal(); err != nil {
		return nil, err
	}
	for n, volume := range volumes {
		path := d.store.path("snapshots", d.id, strconv.Itoa(n)+".man")
		if err := d.store.linkHead(volume, path); err != nil {
			return nil, err
		}
	}
	d.unlock()
	d.dir = ""
	return published, nil
}

// checkPacks looks at the packs of earlier snapshots that the draft refers to.
func (d *Draft) checkPacks() error {
	own, checked := map[manifest.PackID]bool{}, map[manifest.PackID]bool{}
	for _, a := range d.archives {
		own[a.pack.id] = true
	}
	for n, a := range d.archives {
		for _, id := range a.packs {
			if own[id] || checked[id] {
				continue
			}
			checked[id] = true
			d.store.seen.forget(id)
			if err := d.store.seen.check(d.store, id); err != nil {
				return fmt.Errorf("publish archive %d: %w", n, err)
			}
		}
	}
	return nil
}

// finish makes the files of an archive durable, under the names that they will have.
func (d *Draft) finish(n int, a *draftArchive) (int64, error) {
	size, err := a.pack.finish()
	if err != nil {
		return 0, err
	}
	if size > 0 && a.revised {
		if err := d.dropSuperseded(a); err != nil {
			return 0, err
		}
	}
	stored, err := allocated(a.pack.path)
	if err != nil {
		return 0, err
	}
	final := filepath.Join(d.dir, strconv.Itoa(n)+".man")
	if err := d.store.disk.rename(a.finished, final); err != nil {
		return 0, err
	}
	if err := d.store.disk.syncFile(final); err != nil {
		return 0, err
	}
	more, err := allocated(final)
	return stored + more, err
}

// dropSuperseded frees what an earlier pass stored and the last one read anew.
func (d *Draft) dropSuperseded(a *draftArchive) error {
	r, err := d.store.openManifest(a.finished)
	if err != nil {
		return err
	}
	defer r.Close()
	live := liveSet{a.pack.id: nil}
	if err := live.add(r); err != nil {
		return err
	}
	return d.store.freeDead(a.pack.path, live.sorted(a.pack.id))
}

// reveal renames the draft into place: from here on the snapshot exists.
func (d *Draft) reveal() error {
	s := d.store
	if err := s.disk.syncDir(d.dir); err != nil {
		return fmt.Errorf("publish snapshot: %w", err)
	}
	err := s.disk.publish(d.dir, s.path("snapshots", d.id))
	if errors.Is(err, os.ErrExist) {
		return d.exists()
	}
	if err == nil {
		err = s.disk.syncDir(s.path("snapshots"))
	}
	if err != nil {
		return fmt.Errorf("publish snapshot: %w", err)
	}
	return nil
}

// Discard drops the draft. After Publish has succeeded it does nothing.
func (d *Draft) Discard() error {
	if d.dir == "" {
		return nil
	}
	var errs []error
	for _, a := range d.archives {
		errs = append(errs, a.pack.close())
	}
	errs = append(errs, d.store.disk.removeAll(d.dir))
	d.dir = ""
	d.unlock()
	return errors.Join(errs...)
}
