//go:build linux

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// hasVanished says whether the image of a snapshot has been gone for so long that the archives may go. Only the
// engine and image store that had the image can say that it is gone; what others see changes nothing. A note beside
// the manifests says when the image was first missed.
func (s *Store) hasVanished(id string, r Removal) (bool, error) {
	if r.Seen == nil {
		return false, nil
	}
	missed := s.path("snapshots", id, missedFile)
	if slices.Contains(r.Seen.Snapshots, id) {
		return false, s.forgetMissed(missed)
	}
	origin, err := s.origin(id)
	if err != nil {
		return false, fmt.Errorf("read origin of %s: %w", id, err)
	}
	if origin == nil || !origin.isOf(r.Seen) {
		return false, nil
	}
	since, err := s.missedSince(missed)
	if err != nil {
		return false, err
	}
	// Not noted, or by a clock that was wrong.
	if since.IsZero() || since.Before(origin.Published) || since.After(r.Now) {
		return false, s.noteMissed(id, missed, r.Now)
	}
	manifests, err := filepath.Glob(s.path("snapshots", id, "*.man"))
	// Without a manifest or attachments it is no snapshot any more, only packs that others need.
	return r.Now.Sub(since) >= vanishedAge && (len(manifests) > 0 || s.hasAttachments(id)), err
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

// noteMissed notes when an image was first missed. In a full store the next removal does.
func (s *Store) noteMissed(id, path string, now time.Time) error {
	if err := s.writeTime(path, missedFile+"-"+id, now); err != nil {
		return fmt.Errorf("note that an image is missed: %w", err)
	}
	return nil
}

// forgetMissed drops the note: the image is there again.
func (s *Store) forgetMissed(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := s.disk.remove(path); err != nil {
		return fmt.Errorf("forget that an image was missed: %w", err)
	}
	return nil
}
