//go:build linux

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// Removal says what to remove.
type Removal struct {
	Snapshots []Claim
	// Seen, if not nil, is what is there: archives whose image has vanished are removed after a while.
	Seen *Seen
	// Volumes, if not nil, are all that the engine has: what is known of others is forgotten.
	Volumes []string
	// Retention is how long archives are kept after their image was first missed.
	Retention time.Duration
	// Now is the present time, which tells whether that while is over.
	Now time.Time
}

// Seen is what was found in one image store of one engine. It says nothing of archives whose images are elsewhere.
type Seen struct {
	Engine     string
	ImageStore string
	Snapshots  []string // all that have an image
}

var errBusy = fmt.Errorf("another operation uses it: %w", errdefs.ErrConflict)

// Removed says what a removal did.
type Removed struct {
	Snapshots []string
	Foreign   []string // claimed, but what the store has is of another snapshot
	Missed    []string // their images are missed for the first time
	Freed     int64
}

// Remove deletes snapshots and frees what no other refers to. It also finishes an earlier removal that was
// interrupted, and clears away unfinished work. When ctx ends it stops between snapshots or packs; the next removal
// goes on from there.
func (s *Store) Remove(ctx context.Context, r Removal) (Removed, error) {
	unlock, err := s.lock(ctx, unix.LOCK_EX)
	if err != nil {
		return Removed{}, err
	}
	defer unlock()
	return s.removeLocked(ctx, r)
}

func (s *Store) removeLocked(ctx context.Context, r Removal) (Removed, error) {
	if err := s.clearTmp(); err != nil {
		return Removed{}, err
	}
	removed, err := s.victims(r)
	if err == nil {
		err = s.noteLooked(r)
	}
	if err == nil {
		err = s.forgetGone(r)
	}
	if err != nil {
		return Removed{}, err
	}
	before, err := s.packBytes()
	if err != nil {
		return Removed{}, err
	}
	candidates, err := s.dropManifests(ctx, removed.Snapshots)
	if err != nil {
		return Removed{}, err
	}
	if err := s.sweep(ctx, candidates); err != nil {
		return Removed{}, err
	}
	after, err := s.packBytes()
	removed.Freed = before - after
	return removed, err
}

// clearTmp removes what nobody works on any more.
func (s *Store) clearTmp() error {
	left, err := os.ReadDir(s.path("tmp"))
	if err != nil {
		return fmt.Errorf("clear unfinished work: %w", err)
	}
	for _, f := range left {
		if err := s.disk.removeAll(s.path("tmp", f.Name())); err != nil {
			return fmt.Errorf("clear unfinished work: %w", err)
		}
	}
	return nil
}

// victims are the claimed snapshots, as far as they are in the store and the claims are true, and those whose image
// has been gone for long. It also returns what else it has found out about the claims and the images.
func (s *Store) victims(r Removal) (found Removed, err error) {
	claimed := make(map[string]Claim, len(r.Snapshots))
	for _, c := range r.Snapshots {
		if err := CheckID(c.Snapshot); err != nil {
			return Removed{}, err
		}
		claimed[c.Snapshot] = c
	}
	ids, err := s.snapshotDirs()
	if err != nil {
		return Removed{}, err
	}
	for _, id := range ids {
		goes, isNew := false, false
		if claim, ok := claimed[id]; !ok {
			goes, isNew, err = s.hasVanished(id, r)
		} else if goes, err = s.holds(claim); !goes {
			found.Foreign = append(found.Foreign, id)
		}
		if err != nil {
			return Removed{}, err
		}
		if goes {
			found.Snapshots = append(found.Snapshots, id)
		}
		if isNew {
			found.Missed = append(found.Missed, id)
		}
	}
	return found, nil
}

// dropManifests removes the manifests of snapshots, so that they do not exist any more. It returns the packs that may
// have become free, and notes their names on disk until sweep has looked at them.
func (s *Store) dropManifests(ctx context.Context, victims []string) (liveSet, error) {
	candidates, err := s.readSweep()
	if err != nil {
		return nil, err
	}
	for _, id := range victims {
		if err := s.addCandidates(candidates, id); err != nil {
			return nil, err
		}
	}
	if len(victims) == 0 {
		return candidates, nil
	}
	// In a full store there is no room for a note. Go on without it: only removing something makes room. If a crash
	// follows, what is to be freed stays where it is.
	if err := s.writeSweep(candidates); err != nil && !noRoom(err) {
		return nil, err
	}
	for _, id := range victims {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := s.dropSnapshot(id); err != nil {
			return nil, fmt.Errorf("remove snapshot %s: %w", id, err)
		}
	}
	return candidates, nil
}

// addCandidates adds the packs of a snapshot and those that it refers to. A snapshot whose manifest cannot be read is
// removed all the same.
func (s *Store) addCandidates(candidates liveSet, id string) error {
	files, err := os.ReadDir(s.path("snapshots", id))
	if err != nil {
		return fmt.Errorf("remove snapshot %s: %w", id, err)
	}
	for _, f := range files {
		path := s.path("snapshots", id, f.Name())
		switch name := id + "/" + strings.TrimSuffix(f.Name(), ".tar"); {
		case strings.HasSuffix(path, ".tar") && manifest.CheckPackName(name) == nil:
			candidates[s.packs.ID(name)] = nil
		case strings.HasSuffix(path, ".man"):
			r, err := s.openManifest(path)
			if err != nil {
				// Nobody knows what it needed: any pack may have become free.
				if err := s.addAllPacks(candidates); err != nil {
					return err
				}
				continue
			}
			for _, pack := range r.Packs() {
				candidates[pack] = nil
			}
			r.Close()
		}
	}
	return nil
}

func (s *Store) addAllPacks(candidates liveSet) error {
	packs, err := filepath.Glob(s.path("snapshots", "*", "*.tar"))
	if err != nil {
		return err
	}
	for _, path := range packs {
		name := filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), ".tar")
		if manifest.CheckPackName(name) == nil {
			candidates[s.packs.ID(name)] = nil
		}
	}
	return nil
}

// dropSnapshot removes all of a snapshot but its packs.
func (s *Store) dropSnapshot(id string) error {
	dir := s.path("snapshots", id)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".tar") {
			continue
		}
		if err := s.disk.removeAll(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	if err := s.disk.syncDir(dir); err != nil {
		return err
	}
	return s.removeIfEmpty(dir)
}

func (s *Store) removeIfEmpty(dir string) error {
	err := s.disk.remove(dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// packBytes is what all packs, manifests and attachments take on disk.
func (s *Store) packBytes() (int64, error) {
	files, err := filepath.Glob(s.path("snapshots", "*", "*"))
	if err != nil {
		return 0, err
	}
	attachments, err := filepath.Glob(s.path("snapshots", "*", attachmentsDir, "*"))
	if err != nil {
		return 0, err
	}
	files = append(files, attachments...)
	var total int64
	for _, f := range files {
		n, err := allocated(f)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}
