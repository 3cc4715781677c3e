//go:build linux

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// liveSet knows which pieces of some packs are needed, by their offsets.
type liveSet map[manifest.PackID][]int64

// touches says whether any of the packs is in the set.
func (l liveSet) touches(packs []manifest.PackID) bool {
	return slices.ContainsFunc(packs, func(id manifest.PackID) bool {
		_, ok := l[id]
		return ok
	})
}

// add marks what a manifest needs in the packs of the set.
func (l liveSet) add(r *Manifest) error {
	return r.eachLocation(func(at manifest.Location) {
		if offsets, ok := l[at.Pack]; ok {
			l[at.Pack] = append(offsets, at.Offset)
		}
	})
}

// sorted returns what is needed of one pack, in order and once each.
func (l liveSet) sorted(id manifest.PackID) []int64 {
	slices.Sort(l[id])
	l[id] = slices.Compact(l[id])
	return l[id]
}

// has says whether a piece is needed. The offsets of its pack must be sorted.
func (l liveSet) has(at *manifest.Location) bool {
	offsets, ok := l[at.Pack]
	if !ok {
		return true // nothing of this pack is going to be freed
	}
	_, found := slices.BinarySearch(offsets, at.Offset)
	return found
}

// freeDead frees all of a pack but the members whose data is at the live offsets, which are sorted.
func (s *Store) freeDead(path string, live []int64) error {
	f, err := openRegular(path, os.O_RDWR)
	if err != nil {
		return fmt.Errorf("free dead pieces: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("free dead pieces: %w", err)
	}
	dead, err := deadRanges(f, info.Size(), live)
	if err != nil {
		return fmt.Errorf("free dead pieces of %s: %w", path, err)
	}
	for _, part := range dead {
		if err := s.disk.zero(f, part); err != nil {
			return fmt.Errorf("free dead pieces: %w", err)
		}
	}
	if len(dead) == 0 {
		return nil
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("free dead pieces: %w", err)
	}
	return nil
}

// deadRanges finds what lies between live members and is not free yet. An earlier attempt may have been cut short, so
// the dead parts may be half a member.
func deadRanges(in io.ReaderAt, size int64, live []int64) ([]manifest.Range, error) {
	w := memberWalker{in: in, size: size, at: packHeader}
	var dead []manifest.Range
	run := int64(-1) // where the present dead range begins
	end := func(at int64) {
		if run >= 0 {
			dead = append(dead, manifest.Range{Offset: run, Length: at - run})
		}
		run = -1
	}
	for {
		m, err := w.next()
		switch {
		case errors.Is(err, io.EOF):
			end(size)
			if len(live) > 0 {
				return nil, fmt.Errorf("no member has its data at offset %d", live[0])
			}
			return dead, nil
		case err != nil && !errors.Is(err, errNotMember):
			return nil, err
		case err != nil: // half freed: try the block behind
			m = member{start: w.at, end: w.at + tarBlock}
		case len(live) > 0 && m.data == live[0]:
			end(m.start)
			live = live[1:]
			continue
		case len(live) > 0 && m.end > live[0]: // what looks like a header is none
			m.end = m.start + tarBlock
		}
		if run < 0 {
			run = m.start
		}
		if len(live) > 0 && m.end > live[0] {
			return nil, fmt.Errorf("no member has its data at offset %d", live[0])
		}
		w.at = m.end
	}
}

// allocated is what a file takes on disk; a file that is not there takes nothing.
func allocated(path string) (int64, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	if err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Blocks * 512, nil
}
