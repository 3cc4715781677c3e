//go:build linux

package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Doubt says how far a backup believes the heads of its volumes.
type Doubt struct {
	// Full has everything read and hashed. What is in the store already is read there, too, before the backup refers
	// to it.
	Full bool
	// Fraction is the part of what would be skipped that is read and compared, from 0 to 1.
	Fraction float64
	// Every makes that due in the n-th backup since the last one that compared. 0: now, and nobody counts.
	Every int
}

// Doubt says before the first pass how far the backup believes the heads. Without it, it does.
func (b *Backup) Doubt(d Doubt) error {
	for _, v := range b.volumes {
		v.full = d.Full
		if d.Every == 0 {
			v.fraction = d.Fraction
			continue
		}
		since, err := b.store.Unchecked(v.Key)
		if err != nil {
			return err
		}
		v.unchecked = since + 1
		if v.unchecked >= d.Every {
			v.fraction, v.unchecked = d.Fraction, 0
		}
		v.counted = true
	}
	return nil
}

// noteChecks records for the counted volumes how many backups ago they were compared.
func (b *Backup) noteChecks() error {
	for _, v := range b.volumes {
		if !v.counted {
			continue
		}
		if err := b.store.SetUnchecked(v.Key, v.unchecked); err != nil {
			return err
		}
	}
	return nil
}

// contradictionError means that a file does not hold what the head says, although its size and times are the same.
type contradictionError struct{ path string }

func (e *contradictionError) Error() string { return fmt.Sprintf("the record of %q is wrong", e.path) }

// whyContradicted is what users are told of such a file.
const whyContradicted = "its content is not what was recorded for the last snapshot, although its size and times are the same: " +
	"the record or the disk is damaged. This snapshot has what the file holds; those that were taken before may not be true"

// contradict notes a contradiction, for the end of the backup.
func (v *volume) contradict(path string) {
	if v.firstWrong != path {
		v.contradicted.warn(path, whyContradicted)
	}
}

// isDoubted draws whether something that would be skipped is to be compared.
func (p *pass) isDoubted() bool {
	return p.doubted > 0 && rand.Float64() < p.doubted //nolint:gosec // a sample, no secret
}

// compareWith takes a clean entry from the base, and draws how much of it is read and compared. Of a large file it draws
// each piece.
func (p *pass) compareWith(f *found, base *manifest.Entry) (*item, error) {
	it := &item{entry: base}
	small := base.Kind != manifest.Regular || base.Size <= wholeFile
	if p.doubted == 0 || small && !p.isDoubted() {
		return it, nil
	}
	for i := range base.Pieces {
		if small || p.isDoubted() {
			it.doubted = append(it.doubted, int32(i))
			it.cost += int64(base.Pieces[i].Length)
		}
	}
	it.read = len(it.doubted) > 0
	if same, err := p.sameMeta(f, base); err != nil || same {
		return it, err
	}
	return nil, &contradictionError{f.path}
}

// sameMeta compares what an entry has beside its content. An entry that vanishes meanwhile is for others to tell of.
func (p *pass) sameMeta(f *found, base *manifest.Entry) (bool, error) {
	e := &manifest.Entry{Path: f.path, Kind: base.Kind}
	setStat(e, &f.stat)
	var err error
	if e.Xattrs, err = readXattrs(pathXattrs(f.dir, f.name)); err == nil && base.Kind == manifest.Symlink {
		e.Target, err = readLink(f.dir, f.name)
	}
	if reasonToSkip(err) != "" {
		return true, nil
	}
	if err != nil {
		return false, pathError("compare", f.path, err)
	}
	return equalMeta(e, base), nil
}

func equalMeta(a, b *manifest.Entry) bool {
	return a.Kind == b.Kind && a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && a.Size == b.Size && a.Modified == b.Modified &&
		a.Major == b.Major && a.Minor == b.Minor && a.Target == b.Target && slices.Equal(a.Xattrs, b.Xattrs)
}

// compareContent reads some pieces of a file that counts as clean. It fails if they are not what the head says.
func (r *reader) compareContent(it *item) error {
	fd, err := r.tree.openFile(it.entry.Path)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	for _, i := range it.doubted {
		piece := &it.entry.Pieces[i]
		content := r.buffers.get(int(piece.Length))
		n, err := readFull(fd, content, piece.Offset)
		same := err == nil && n == len(content) && sha256.Sum256(content) == piece.Sum
		r.buffers.put(content)
		if err != nil {
			return err
		}
		r.counter.Bytes.Add(int64(n))
		if same {
			continue
		}
		var now unix.Stat_t
		if err := unix.Fstat(fd, &now); err != nil {
			return err
		}
		if !isClean(it.entry, manifest.Regular, &now) {
			return nil // it has changed since it was looked at: the next pass reads it
		}
		return &contradictionError{it.entry.Path}
	}
	return nil
}

// checkExpected compares a file that was read in full with what the head says, and notes if that is wrong.
func (p *pass) checkExpected(it *item) {
	was, e := it.expected, it.entry
	if was == nil || it.changed || it.leftOut != "" || it.short >= 0 && it.read {
		return
	}
	if e.Cached.Inode != was.Cached.Inode || e.Cached.Changed != was.Cached.Changed {
		return // it has changed since it was looked at
	}
	if !equalMeta(e, was) || !slices.EqualFunc(e.Pieces, was.Pieces, func(a, b manifest.Piece) bool {
		return a.Offset == b.Offset && a.Length == b.Length && a.Sum == b.Sum
	}) {
		p.contradict(e.Path)
	}
}

// isInStore tells, for a backup that believes nothing, whether the store really holds a piece where the index says.
// What it does not hold is stored again.
func (r *reader) isInStore(p *manifest.Piece, path string) bool {
	if !r.full || r.isOwn(p.At.Pack) {
		return true
	}
	if _, err := r.store.ReadPiece(p, path, &r.stored); err == nil {
		return true
	}
	r.index.Remove(&p.Sum, p.At)
	return false
}

// asContradiction returns the contradiction that ended a pass.
func asContradiction(err error) (*contradictionError, bool) {
	return errors.AsType[*contradictionError](err)
}
