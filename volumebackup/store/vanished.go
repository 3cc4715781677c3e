//go:build linux

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Lost is a snapshot in the store whose image is gone.
type Lost struct {
	Snapshot string
	Since    time.Time         // when the image was first missed
	Labels   map[string]string // of the image; nil: not known. Nobody has checked them
}

// EachLost calls visit for every snapshot whose image is gone, as far as whoever has seen the images can tell, in the
// order of their IDs. It notes those that were not missed before, as far as the store can be written.
func (s *Store) EachLost(ctx context.Context, seen Seen, now time.Time, visit func(Lost)) error {
	unlock, err := s.Share(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	ids, err := s.snapshotDirs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		missing, err := s.missing(id, &seen, now)
		if err != nil {
			return err
		}
		if missing.since.IsZero() || !s.isSnapshot(id) {
			continue
		}
		labels, err := s.readRecord(id)
		if err != nil {
			return err
		}
		visit(Lost{Snapshot: id, Since: missing.since, Labels: labels})
	}
	return nil
}

// missing says since when an image is missed, and whether that was not known before. Zero: it is not missed.
type missing struct {
	since time.Time
	isNew bool
}

// missing finds out whether the image of a snapshot is gone. Only the engine and image store that had the image can
// say so; what others see changes nothing. A note beside the manifests says when it was first missed.
func (s *Store) missing(id string, seen *Seen, now time.Time) (missing, error) {
	if seen == nil {
		return missing{}, nil
	}
	note := s.path("snapshots", id, missedFile)
	if slices.Contains(seen.Snapshots, id) {
		return missing{}, s.forgetMissed(note)
	}
	origin, err := s.origin(id)
	if err != nil {
		return missing{}, fmt.Errorf("read origin of %s: %w", id, err)
	}
	if origin == nil || !origin.isOf(seen) {
		return missing{}, nil
	}
	since, err := s.missedSince(note)
	if err != nil {
		return missing{}, err
	}
	// Not noted, or by a clock that was wrong.
	if since.IsZero() || since.Before(origin.Published) || since.After(now) {
		return missing{since: now, isNew: true}, s.noteMissed(id, note, now)
	}
	return missing{since: since}, nil
}

// hasVanished says whether the image of a snapshot has been gone for so long that the archives may go, and whether it
// is missed for the first time.
func (s *Store) hasVanished(id string, r Removal) (goes, isNew bool, err error) {
	found, err := s.missing(id, r.Seen, r.Now)
	if err != nil || found.since.IsZero() {
		return false, false, err
	}
	// Without a manifest or attachments it is no snapshot any more, only packs that others need.
	return !found.isNew && r.Now.Sub(found.since) >= r.Retention && s.isSnapshot(id), found.isNew && s.isSnapshot(id), nil
}

// isOf tells whether the image was in the image store that was looked at.
func (o *Origin) isOf(seen *Seen) bool {
	return o.Engine != "" && o.ImageStore != "" && o.Engine == seen.Engine && o.ImageStore == seen.ImageStore
}

// missedSince reads when an image was first missed; zero: never, or that cannot be read.
func (s *Store) missedSince(path string) (time.Time, error) {
	since, err := readTime(path)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when an image was missed: %w", err)
	}
	return since, nil
}

// readTime reads a note of a time; zero: there is none, or it cannot be read.
func readTime(path string) (time.Time, error) {
	content, err := readNote(path, maxNote)
	if err != nil {
		return time.Time{}, err
	}
	noted, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(string(content), "\n"))
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // it is noted again
	}
	return noted, nil
}

// writeTime makes a note of a time. A full store has no room for it, and can do without.
func (s *Store) writeTime(path, name string, t time.Time) error {
	err := s.disk.replace(path, s.temporary(name), []byte(t.UTC().Format(time.RFC3339Nano)+"\n"))
	if noRoom(err) {
		return nil
	}
	return err
}

// lookAge is how long a store is not compared with an engine's images after it was.
const lookAge = 24 * time.Hour

// IsLookDue tells whether it is time for a [Removal] with Seen, to find out which images are gone. In a new store it
// is not. If the note of the last time cannot be read, it is.
func (s *Store) IsLookDue(now time.Time) bool {
	looked, err := readTime(s.path(lookedFile))
	if err == nil && looked.IsZero() {
		var made os.FileInfo
		if made, err = os.Lstat(s.path("format")); err == nil {
			looked = made.ModTime()
		}
	}
	return err != nil || looked.After(now) || now.Sub(looked) >= lookAge
}

// HasOthersOf tells whether the store has snapshots of the container of an origin, made on its engine and in its image
// store, besides the newest. What cannot be read does not count.
func (s *Store) HasOthersOf(of Origin) bool {
	ids, err := s.snapshotDirs()
	if err != nil {
		return false
	}
	found := 0
	for _, id := range ids {
		origin, err := s.origin(id)
		if err == nil && origin != nil && origin.Container == of.Container && origin.isOf(&Seen{Engine: of.Engine, ImageStore: of.ImageStore}) {
			found++
		}
	}
	return found > 1
}

// noteLooked notes that the store was compared with the images of an engine.
func (s *Store) noteLooked(r Removal) error {
	if r.Seen == nil {
		return nil
	}
	if err := s.writeTime(s.path(lookedFile), lookedFile, r.Now); err != nil {
		return fmt.Errorf("note when the images were looked at: %w", err)
	}
	return nil
}

// noteMissed notes when an image was first missed. In a full store the next removal does, and in one that cannot be
// written nobody does.
func (s *Store) noteMissed(id, path string, now time.Time) error {
	err := s.writeTime(path, missedFile+"-"+id, now)
	if err != nil && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("note that an image is missed: %w", err)
	}
	return nil
}

// forgetMissed drops the note: the image is there again.
func (s *Store) forgetMissed(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := s.disk.remove(path); err != nil && !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("forget that an image was missed: %w", err)
	}
	return nil
}
