//go:build linux

package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// Ref names an archive in the store, and its root if that is known.
type Ref struct {
	Snapshot string
	Archive  int
	Root     *manifest.Sum
}

// SecureOptions say what a volume holds, and what it is going to hold.
type SecureOptions struct {
	Now   Ref
	Next  Ref
	Mount Mount
}

// SecureResult says what it took to make the way back safe.
type SecureResult struct {
	Checked  int64 // bytes
	Repaired int64 // pieces
}

// Secure makes sure that a restore can be rolled back: after the volume has become what the archive Next says, it must be
// possible to make it again what the archive Now says. Secure reads and checks every piece of Now that Next does not
// leave in place. It stores a damaged piece anew from the volume, which must still be what Now says. If it cannot, it
// fails.
func Secure(ctx context.Context, s *store.Store, o SecureOptions, reporter Reporter, counter *Counter) (SecureResult, error) {
	unlock, err := s.Share(ctx)
	if err != nil {
		return SecureResult{}, err
	}
	defer unlock()
	c := &securing{SecureOptions: o, store: s, counter: counter, damaged: map[manifest.Sum]damagedPiece{}}
	if err := c.check(ctx); err != nil {
		return SecureResult{}, err
	}
	result := SecureResult{Checked: counter.Bytes.Load(), Repaired: int64(len(c.damaged))}
	if len(c.damaged) == 0 {
		return result, nil
	}
	if err := s.Repair(o.Now.Snapshot, o.Now.Archive, o.Mount.Key, c.storeAgain); err != nil {
		return SecureResult{}, err
	}
	reporter.Warn(o.Mount.Number, "", c.account())
	return result, nil
}

// securing is one call of Secure.
type securing struct {
	SecureOptions
	store   *store.Store
	counter *Counter

	mu      sync.Mutex
	damaged map[manifest.Sum]damagedPiece
}

// damagedPiece is a piece that the store has lost, and where the volume holds it.
type damagedPiece struct {
	entry *manifest.Entry
	piece *manifest.Piece
	err   error
}

func (c *securing) check(ctx context.Context) error {
	now, err := openArchive(c.store, c.Now)
	if err != nil {
		return err
	}
	next, err := openArchive(c.store, c.Next)
	if err != nil {
		now.Close()
		return err
	}
	if now.Summary().Root == next.Summary().Root {
		now.Close()
		next.Close()
		return nil
	}
	w := wayBack{now: newCursor(now), next: newCursor(next), linked: map[string]*manifest.Entry{}, relinked: map[string]bool{}}
	defer func() {
		w.now.close()
		w.next.close()
	}()
	return checkAll(ctx, c.checkPieces, func(need needPieces) error {
		w.need = need
		return w.walk()
	})
}

// checkPieces reads pieces of a file, and notes those that are damaged.
func (c *securing) checkPieces(e *manifest.Entry, pieces []manifest.Piece, b *store.Buffer) error {
	for i := range pieces {
		p := &pieces[i]
		content, err := c.store.ReadPiece(p, e.Path, b)
		if err != nil && !isDamage(err) {
			return err
		}
		if err != nil {
			c.note(damagedPiece{entry: e, piece: p, err: err})
		}
		c.counter.Bytes.Add(int64(len(content)))
	}
	return nil
}

func (c *securing) note(d damagedPiece) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.damaged[d.piece.Sum] = d
}

// storeAgain reads what is damaged in the store from the volume.
func (c *securing) storeAgain(pack *store.PackWriter) (map[manifest.Sum]manifest.Location, error) {
	t, err := openTree(c.Mount.Path)
	if err != nil {
		return nil, err
	}
	moved := map[manifest.Sum]manifest.Location{}
	var zip compressor
	for sum, d := range c.damaged {
		if moved[sum], err = d.storeAgain(t, pack, &zip); err != nil {
			err = fmt.Errorf("%w; the volume cannot replace it: %w", d.err, err)
			break
		}
	}
	return moved, errors.Join(err, t.close())
}

func (d *damagedPiece) storeAgain(t *tree, pack *store.PackWriter, zip *compressor) (manifest.Location, error) {
	fd, err := t.openFile(d.entry.Path)
	if err != nil {
		return manifest.Location{}, err
	}
	defer closeFD(fd)
	content := make([]byte, d.piece.Length)
	n, err := readFull(fd, content, d.piece.Offset)
	if err != nil {
		return manifest.Location{}, err
	}
	if sha256.Sum256(content[:n]) != d.piece.Sum {
		return manifest.Location{}, errors.New("the file has changed since the snapshot")
	}
	codec, stored, err := zip.encode(content)
	if err != nil {
		return manifest.Location{}, err
	}
	return pack.Add(d.entry.Path, len(d.entry.Pieces) == 1 && d.entry.Size <= wholeFile, d.piece, d.entry.Modified, codec, stored)
}

// account says what was damaged, for people.
func (c *securing) account() string {
	packs := map[string]bool{}
	var names []string
	for _, d := range c.damaged {
		damaged, ok := errors.AsType[*store.DamagedError](d.err)
		if ok && !packs[damaged.Pack] {
			packs[damaged.Pack] = true
			names = append(names, damaged.Pack)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("pieces of what it holds were damaged in %s: %d of them were stored again; "+
		"snapshots that were taken before may not be restored completely", strings.Join(names, ", "), len(c.damaged))
}

func openArchive(s *store.Store, a Ref) (*store.Manifest, error) {
	r := &restore{RestoreOptions: RestoreOptions{Snapshot: a.Snapshot, Archive: a.Archive, Root: a.Root}, store: s}
	return r.manifest()
}
