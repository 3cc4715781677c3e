//go:build linux

package archive

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// plannedDir is a directory of the manifest.
type plannedDir struct {
	length  int // of its path
	ordinal int64
	planned bool // it has a step
	touched bool // something in it is made, replaced or deleted
	alone   bool // it was not chosen
	missing bool // the volume does not have it
	blocked bool // the volume has something else in its place
}

// slot is the place of an entry in the manifest and in its directories.
type slot struct {
	ordinal int64
	parent  *plannedDir // nil for the root
	self    *plannedDir // nil unless it is a directory
	alone   bool        // it was not chosen, so it stays as it is
}

// plan notes that the entry has a step, if it is a directory.
func (s *slot) plan() {
	if s.self != nil {
		s.self.planned = true
	}
}

// enter keeps track of the directories above the present entry.
func (p *planner) enter(e *manifest.Entry, ordinal int64) slot {
	length := len(manifest.Parent(e.Path)) // the manifest has the parent, and it came after all that it is not in
	for len(p.above) > 0 && p.above[len(p.above)-1].length > length {
		p.above = p.above[:len(p.above)-1]
	}
	at := slot{ordinal: ordinal, alone: !p.Chosen.has(e.Path)}
	if len(p.above) > 0 {
		at.parent = p.above[len(p.above)-1]
	}
	if e.Kind == manifest.Directory {
		at.self = &plannedDir{length: len(e.Path), ordinal: ordinal, alone: at.alone}
		p.entered = e.Path
		p.above = append(p.above, at.self)
		p.dirs = append(p.dirs, at.self)
		p.hold(int(unsafe.Sizeof(*at.self)))
	}
	return at
}

// makeWay plans the directories above an entry that is made, where they are missing and were not chosen themselves.
func (p *planner) makeWay(e *manifest.Entry) error {
	for _, d := range p.above {
		if d.length >= len(e.Path) || d.planned || !d.alone {
			continue
		}
		if d.blocked {
			return fmt.Errorf("restore %q: %q is no directory now, and was not chosen: %w", e.Path, e.Path[:d.length], errdefs.ErrConflict)
		}
		if d.missing {
			d.planned = true
			p.addStep(step{ordinal: d.ordinal, action: actCreate}, Created, 0)
		}
	}
	return nil
}

// parentOf finds the directory of the manifest that holds a path of the volume; nil if there is none.
func (p *planner) parentOf(path string) *plannedDir {
	parent := manifest.Parent(path)
	if p.entered != parent && parent != "" && !isIn(p.entered, parent) {
		return nil
	}
	n, ok := slices.BinarySearchFunc(p.above, len(parent), func(d *plannedDir, length int) int { return d.length - length })
	if !ok {
		return nil
	}
	return p.above[n]
}

func (d *plannedDir) touch() {
	if d != nil {
		d.touched = true
	}
}
