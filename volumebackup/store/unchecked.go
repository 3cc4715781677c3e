//go:build linux

package store

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// uncheckedFile is the name of a note beside a head.
const uncheckedFile = "unchecked"

// maxUnchecked bounds what a note can say: whoever has counted so far has something else to do.
const maxUnchecked = 1 << 20

// Unchecked is how many snapshots of a volume were taken since one compared the volume with its head; 0 if that is not
// known.
func (s *Store) Unchecked(volume string) (int, error) {
	content, err := readNote(s.uncheckedPath(volume), maxFormatFile)
	if err != nil {
		return 0, fmt.Errorf("read how often volume %s was believed: %w", volume, err)
	}
	n, err := strconv.Atoi(strings.TrimSuffix(string(content), "\n"))
	if err != nil || n < 0 {
		return 0, nil //nolint:nilerr // it is damaged, or there is none
	}
	return min(n, maxUnchecked), nil
}

// SetUnchecked records that number. It does not sync: a crash only makes the next comparison come later.
func (s *Store) SetUnchecked(volume string, n int) error {
	path, temporary := s.uncheckedPath(volume), s.temporary(uncheckedFile)
	if err := s.disk.write(temporary, fmt.Appendf(nil, "%d\n", n)); err != nil {
		return fmt.Errorf("note how often volume %s was believed: %w", volume, err)
	}
	return s.putHead(path, temporary)
}

func (s *Store) uncheckedPath(volume string) string {
	return filepath.Join(filepath.Dir(s.headPath(volume)), uncheckedFile)
}
