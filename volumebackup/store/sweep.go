//go:build linux

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sweep frees what nothing refers to in the candidates. Heads are trimmed
// first, so that none ever names bytes that are gone.
func (s *Store) sweep(ctx context.Context, candidates liveSet) error {
	if len(candidates) == 0 {
		return nil
	}
	if err := s.markLive(ctx, candidates); err != nil {
		return err
	}
	if err := s.trimHeads(ctx, candidates); err != nil {
		return err
	}
	if err := s.syncHeads(); err != nil {
		return err
	}
	for id := range candidates {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := s.freePack(id, candidates[id]); err != nil {
			return err
		}
	}
	return s.disk.remove(s.path("sweep"))
}

// markLive finds what the remaining snapshots need of the candidates. If one
// of them cannot be read nothing is freed: what it needs is not known.
func (s *Store) markLive(ctx context.Context, candidates liveSet) error {
	manifests, err := filepath.Glob(s.path("snapshots", "*", "*.man"))
	if err != nil {
		return err
	}
	for _, path := range manifests {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := s.markManifest(path, candidates); err != nil {
			return fmt.Errorf("find what is still needed: %w", err)
		}
	}
	for id := range candidates {
		candidates.sorted(id)
	}
	return nil
}

func (s *Store) markManifest(path string, candidates liveSet) error {
	r, err := s.openManifest(path)
	if err != nil {
		return err
	}
	defer r.Close()
	if !candidates.touches(r.Packs()) {
		return nil
	}
	return candidates.add(r)
}

// trimHeads takes what is about to be freed out of the heads.
func (s *Store) trimHeads(ctx context.Context, candidates liveSet) error {
	heads, err := filepath.Glob(s.path("volumes", "*", "head"))
	if err != nil {
		return err
	}
	for _, head := range heads {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := s.trimHead(head, candidates); err != nil {
			return fmt.Errorf("trim %s: %w", head, err)
		}
	}
	return nil
}

func (s *Store) trimHead(path string, candidates liveSet) error {
	needed, err := s.copyHead(path, candidates, func(*Entry) error { return nil })
	if err == nil && needed {
		err = s.writeHead(path, func(w *ManifestWriter) error {
			_, err := s.copyHead(path, candidates, w.Append)
			return err
		})
	}
	if _, ok := errors.AsType[*DamagedError](err); ok || noRoom(err) {
		return s.dropHead(path) // it is only a cache
	}
	return err
}

// syncHeads makes durable which head each volume has. A new one was put into its place without
// waiting; the one before, which a crash would bring back, may name what is about to be freed.
func (s *Store) syncHeads() error {
	dirs, err := filepath.Glob(s.path("volumes", "*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := s.disk.syncDir(dir); err != nil {
			return fmt.Errorf("sync heads: %w", err)
		}
	}
	return nil
}

// copyHead hands the entries of a head to visit as they are after trimming, and says
// whether that changes any.
func (s *Store) copyHead(path string, candidates liveSet, visit func(*Entry) error) (bool, error) {
	r, err := s.openHead(path)
	if err != nil || r == nil {
		return false, err
	}
	defer r.Close()
	if !candidates.touches(r.Packs()) {
		return false, nil
	}
	trimmed := false
	err = r.Each(func(e *Entry) error {
		trimmed = trim(e, candidates) || trimmed
		return visit(e)
	})
	return trimmed && err == nil, err
}

// trim takes the locations of what is going to be freed out of an entry.
func trim(e *Entry, candidates liveSet) bool {
	trimmed := false
	for i := range e.Pieces {
		if at := &e.Pieces[i].At; at.Pack != 0 && !candidates.has(at) {
			*at = Location{}
			e.Cached.Unsettled = true
			trimmed = true
		}
	}
	return trimmed
}

// freePack unlinks a pack of which nothing is needed, and frees what is dead in others.
func (s *Store) freePack(id PackID, live []int64) error {
	s.seen.forget(id)
	path := s.packPath(id)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if len(live) > 0 {
		return s.freeDead(path, live)
	}
	if err := s.disk.remove(path); err != nil {
		return fmt.Errorf("remove pack: %w", err)
	}
	if err := s.removeIfEmpty(filepath.Dir(path)); err != nil {
		return fmt.Errorf("remove pack: %w", err)
	}
	return nil
}

// readSweep returns the packs that an interrupted removal has not looked at.
func (s *Store) readSweep() (liveSet, error) {
	candidates := liveSet{}
	names, err := readNote(s.path("sweep"), maxPackNames)
	if err != nil {
		return nil, fmt.Errorf("read sweep: %w", err)
	}
	for name := range bytes.Lines(names) {
		if name := strings.TrimSuffix(string(name), "\n"); checkPackName(name) == nil {
			candidates[s.packs.id(name)] = nil
		}
	}
	return candidates, nil
}

func (s *Store) writeSweep(candidates liveSet) error {
	var names bytes.Buffer
	for id := range candidates {
		fmt.Fprintln(&names, s.packs.name(id))
	}
	if err := s.disk.replace(s.path("sweep"), s.temporary("sweep"), names.Bytes()); err != nil {
		return fmt.Errorf("write sweep: %w", err)
	}
	return nil
}
