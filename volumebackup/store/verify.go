//go:build linux

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Verification checks archives; what several of them share is read once.
type Verification struct {
	store   *Store
	damaged func(*DamagedError)
	// Quick looks only whether the packs are there and whole in size. The manifests are read and checked all the same.
	Quick bool

	mu      sync.Mutex
	checked map[checkedPiece]bool
	packs   map[manifest.PackID]bool // that were looked at
	bytes   int64
}

type checkedPiece struct {
	pack   manifest.PackID
	offset int64
	sum    indexKey
}

// NewVerification makes a verification. It calls damaged for each damage, one call at a time.
func (s *Store) NewVerification(damaged func(*DamagedError)) *Verification {
	var telling sync.Mutex
	oneByOne := func(d *DamagedError) {
		telling.Lock()
		defer telling.Unlock()
		damaged(d)
	}
	return &Verification{store: s, damaged: oneByOne, checked: map[checkedPiece]bool{}, packs: map[manifest.PackID]bool{}}
}

// Bytes is how much content has been found to be good so far.
func (v *Verification) Bytes() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bytes
}

// Archive reads all that an archive needs. It reports damage and goes on; an error means that it could not find out.
func (v *Verification) Archive(ctx context.Context, id string, n int, root *manifest.Sum) error {
	r, err := v.store.OpenManifest(id, n)
	if err != nil {
		return v.tell(err)
	}
	defer r.Close()
	if root != nil && r.Summary().Root != *root {
		v.damaged(&DamagedError{Pack: r.name, Offset: -1, Reason: "it is not the list of files that was written for the snapshot"})
	}
	if v.Quick {
		return v.presence(ctx, r)
	}
	group, ctx := errgroup.WithContext(ctx)
	entries := make(chan *manifest.Entry, 64)
	for range runtime.GOMAXPROCS(0) + 1 {
		group.Go(func() error {
			var buffer Buffer
			for e := range entries {
				if err := v.entry(ctx, e, &buffer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(entries)
		return v.tell(sendEntries(ctx, r, entries))
	})
	return group.Wait()
}

// presence reads a manifest to its end, and looks at the packs that it refers to.
func (v *Verification) presence(ctx context.Context, r *Manifest) error {
	err := r.Each(func(*manifest.Entry) error { return context.Cause(ctx) })
	if err := v.tell(err); err != nil {
		return err
	}
	for _, id := range r.Packs() {
		if err := v.pack(id); err != nil {
			return err
		}
	}
	return nil
}

func sendEntries(ctx context.Context, r *Manifest, entries chan<- *manifest.Entry) error {
	return r.Each(func(e *manifest.Entry) error {
		if len(e.Pieces) == 0 {
			return nil
		}
		select {
		case entries <- e:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// tell hands damage on, and returns any other error.
func (v *Verification) tell(err error) error {
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		v.damaged(damaged)
		return nil
	}
	return err
}

func (v *Verification) entry(ctx context.Context, e *manifest.Entry, b *Buffer) error {
	for i := range e.Pieces {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		p := &e.Pieces[i]
		key := checkedPiece{pack: p.At.Pack, offset: p.At.Offset, sum: indexKey(p.Sum[:16])}
		if v.isGood(key) {
			continue
		}
		if err := v.pack(p.At.Pack); err != nil {
			return err
		}
		_, err := v.store.ReadPiece(p, e.Path, b)
		if err == nil {
			err = v.store.checkHeader(p, e.Path)
		}
		if err != nil {
			if err := v.tell(err); err != nil {
				return err
			}
			continue
		}
		v.setGood(key, int64(p.Length))
	}
	return nil
}

// pack looks at a pack, once. Its pieces are checked also if the pack is damaged.
func (v *Verification) pack(id manifest.PackID) error {
	v.mu.Lock()
	known := id == 0 || v.packs[id]
	v.packs[id] = true
	v.mu.Unlock()
	if known {
		return nil
	}
	if err := v.tell(v.store.checkPack(id)); err != nil {
		return err
	}
	return v.tell(v.store.checkEnd(id))
}

// checkEnd tells what is wrong with the end of a pack, which is the end of a tar. Of a pack that is gone or too short
// others tell.
func (s *Store) checkEnd(id manifest.PackID) error {
	f, err := s.files.open(id)
	if err != nil {
		return nil //nolint:nilerr // checkPack has told
	}
	info, err := f.Stat()
	if err != nil || info.Size() < packHeader+tarEnd {
		return nil //nolint:nilerr // as above
	}
	return s.damagedPack(id, checkZero(f, info.Size()-tarEnd, tarEnd))
}

// checkZero fails if one of the bytes there is not zero.
func checkZero(in io.ReaderAt, at, length int64) error {
	b := make([]byte, length)
	if _, err := in.ReadAt(b, at); err != nil {
		return noEOF(err)
	}
	if !isZero(b) {
		return fmt.Errorf("the bytes from %d to %d should be zero", at, at+length)
	}
	return nil
}

func (v *Verification) isGood(key checkedPiece) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.checked[key]
}

func (v *Verification) setGood(key checkedPiece, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.checked[key] {
		v.checked[key] = true
		v.bytes += n
	}
}

// checkHeader checks the tar header before a piece and the name before that, without which standard tools could not
// find the piece, and the padding behind it.
func (s *Store) checkHeader(p *manifest.Piece, path string) error {
	f, err := s.files.open(p.At.Pack)
	if err != nil {
		return s.damagedPiece(p, path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return s.damagedPiece(p, path, err)
	}
	w := memberWalker{in: f, size: info.Size(), at: p.At.Offset - tarBlock, small: true}
	m, err := w.next()
	if err == nil && (m.data != p.At.Offset || m.size != int64(p.At.Stored)) {
		err = fmt.Errorf("the header before it is that of another member")
	}
	if err == nil {
		err = checkZero(f, m.data+m.size, m.end-m.data-m.size)
	}
	if err == nil && len(m.name) == tarName {
		err = checkLongName(f, p.At.Offset-tarBlock, m.name)
	}
	if err != nil {
		return s.damagedPiece(p, path, err)
	}
	return nil
}
