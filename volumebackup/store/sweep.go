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

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// sweep frees what nothing refers to in the candidates. It trims the heads first, so that none ever names bytes that
// are gone.
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

// markLive finds what the remaining snapshots need of the candidates. If one of them cannot be read, nothing is
// freed: nobody knows what it needs.
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
	needed, err := s.copyHead(path, candidates, func(*manifest.Entry) error { return nil })
	if err == nil && needed {
		err = s.writeHead(path, func(w *manifest.Writer) error {
			_, err := s.copyHead(path, candidates, w.Append)
			return err
		})
	}
	if _, ok := errors.AsType[*DamagedError](err); ok || noRoom(err) {
		return s.dropHead(path) // it is only a cache
	}
	return err
}

// syncHeads makes durable which head each volume has. linkHead does not sync, and the head before it, which a crash
// would bring back, may name bytes that are about to be freed.
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

// copyHead trims the entries of a head and hands them to visit. It says whether trimming changes any.
func (s *Store) copyHead(path string, candidates liveSet, visit func(*manifest.Entry) error) (bool, error) {
	r, err := s.openHead(path)
	if err != nil || r == nil {
		return false, err
	}
	defer r.Close()
	if !candidates.touches(r.Packs()) {
		return false, nil
	}
	trimmed := false
	err = r.Each(func(e *manifest.Entry) error {
		trimmed = trim(e, candidates) || trimmed
		return visit(e)
	})
	return trimmed && err == nil, err
}

// trim takes the locations of what is going to be freed out of an entry.
func trim(e *manifest.Entry, candidates liveSet) bool {
	trimmed := false
	for i := range e.Pieces {
		if at := &e.Pieces[i].At; at.Pack != 0 && !candidates.has(at) {
			*at = manifest.Location{}
			e.Cached.Unsettled = true
			trimmed = true
		}
	}
	return trimmed
}

// freePack unlinks a pack that nobody needs, and frees what is dead in any other.
func (s *Store) freePack(id manifest.PackID, live []int64) error {
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

// maxSweep is how many bytes of the names of packs are read.
const maxSweep = 4 << 20

// readSweep returns the packs that an interrupted removal has not looked at.
func (s *Store) readSweep() (liveSet, error) {
	candidates := liveSet{}
	names, err := readNote(s.path("sweep"), maxSweep)
	if err != nil {
		return nil, fmt.Errorf("read sweep: %w", err)
	}
	for name := range bytes.Lines(names) {
		if name := strings.TrimSuffix(string(name), "\n"); manifest.CheckPackName(name) == nil {
			candidates[s.packs.ID(name)] = nil
		}
	}
	return candidates, nil
}

func (s *Store) writeSweep(candidates liveSet) error {
	var names bytes.Buffer
	for id := range candidates {
		fmt.Fprintln(&names, s.packs.Name(id))
	}
	if err := s.disk.replace(s.path("sweep"), s.temporary("sweep"), names.Bytes()); err != nil {
		return fmt.Errorf("write sweep: %w", err)
	}
	return nil
}
