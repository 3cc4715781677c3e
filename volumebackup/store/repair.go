//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Repair calls fill to store pieces of an archive anew, in a pack of their own. Then it makes the archive's manifest,
// and the head of its volume, refer to them there. The archive says the same as before, so its root stays. The caller
// holds the lock.
func (s *Store) Repair(id string, n int, volume string, fill func(*PackWriter) (map[manifest.Sum]manifest.Location, error)) (err error) {
	dir := s.temporary("repair")
	if err := s.disk.mkdir(dir); err != nil {
		return fmt.Errorf("repair archive: %w", err)
	}
	defer func() { err = errors.Join(err, s.disk.removeAll(dir)) }()
	name, err := s.freePackName(id)
	if err != nil {
		return err
	}
	pack := &PackWriter{path: filepath.Join(dir, "tar"), disk: &s.disk, id: s.packs.ID(name), name: name}
	moved, err := fill(pack)
	if err != nil {
		return errors.Join(err, pack.close())
	}
	if _, err := pack.finish(); err != nil {
		return errors.Join(err, pack.close())
	}
	// The pack first: if the manifest does not follow, nobody needs the pack, and it goes with the snapshot.
	if err := s.disk.place(pack.path, s.packPath(pack.id)); err != nil {
		return fmt.Errorf("repair archive: %w", err)
	}
	s.seen.forget(pack.id)
	return s.relocate(id, n, volume, filepath.Join(dir, "man"), moved)
}

// relocate replaces the manifest of an archive by one that names other places.
func (s *Store) relocate(id string, n int, volume, temporary string, moved map[manifest.Sum]manifest.Location) error {
	r, err := s.OpenManifest(id, n)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = s.writeManifest(temporary, func(w *manifest.Writer) error {
		return r.Each(func(e *manifest.Entry) error {
			for i := range e.Pieces {
				if at, ok := moved[e.Pieces[i].Sum]; ok {
					e.Pieces[i].At = at
				}
			}
			return w.Append(e)
		})
	})
	if err != nil {
		return err
	}
	final := s.path("snapshots", id, strconv.Itoa(n)+".man")
	if err := s.disk.syncFile(temporary); err != nil {
		return fmt.Errorf("repair archive: %w", err)
	}
	if err := s.disk.rename(temporary, final); err != nil {
		return fmt.Errorf("repair archive: %w", err)
	}
	if err := s.disk.syncDir(filepath.Dir(final)); err != nil {
		return fmt.Errorf("repair archive: %w", err)
	}
	return s.linkHead(volume, final)
}

// freePackName is a name for one more pack of a snapshot. Such packs count from the highest number down, where no
// archive is.
func (s *Store) freePackName(id string) (string, error) {
	for n := manifest.MaxArchive; n >= 0; n-- {
		_, err := os.Lstat(s.path("snapshots", manifest.PackName(id, n)+".tar"))
		if errors.Is(err, os.ErrNotExist) {
			return manifest.PackName(id, n), nil
		}
		if err != nil {
			return "", fmt.Errorf("repair archive: %w", err)
		}
	}
	return "", fmt.Errorf("repair archive: snapshot %s has too many packs", id)
}
