//go:build linux

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// forgetAge is how old what is known of a volume has to be before it is forgotten: a volume that was made since the engine
// was asked is not among those that it has.
const forgetAge = time.Hour

// forgetGone drops the heads of volumes that the engine does not have any more. What is known of bind mounts stays: no
// engine can list those, and their names here are hashes.
func (s *Store) forgetGone(r Removal) error {
	if r.Volumes == nil {
		return nil
	}
	kept := make(map[string]bool, len(r.Volumes))
	for _, volume := range r.Volumes {
		kept[filepath.Dir(s.headPath(volume))] = true
	}
	known, err := os.ReadDir(s.path("volumes"))
	if err != nil {
		return fmt.Errorf("forget volumes that are gone: %w", err)
	}
	for _, volume := range known {
		dir := s.path("volumes", volume.Name())
		info, err := volume.Info()
		if err != nil || kept[dir] || strings.HasPrefix(volume.Name(), hashedPrefix) || r.Now.Sub(info.ModTime()) < forgetAge {
			continue
		}
		if err := s.disk.removeAll(dir); err != nil {
			return fmt.Errorf("forget volume %s: %w", volume.Name(), err)
		}
	}
	return nil
}
