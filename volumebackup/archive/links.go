//go:build linux

package archive

import (
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// linkPlan collects the entries that have to do with hard links. planLinks decides about them last, when all names of
// each file are known.
type linkPlan struct {
	entries []*linked
	// names counts the names that the volume has for a file, by inode.
	names map[uint64]uint64
}

// linked is an entry of the manifest that is one of several names, or is so in the volume.
type linked struct {
	slot
	entry *manifest.Entry
	there *seen // nil if nothing is at its path by then
	// change is what to call it, for people, if nothing is there.
	change ChangeKind
}

func newLinkPlan() linkPlan { return linkPlan{names: map[uint64]uint64{}} }

func (l *linkPlan) add(e *linked) { l.entries = append(l.entries, e) }

// seen counts a name of a file in the volume.
func (l *linkPlan) seen(f *found) {
	if f.stat.Nlink > 1 {
		l.names[f.stat.Ino]++
	}
}

// first is the path that stands for all names of a file in the manifest.
func (l *linked) first() string {
	if l.entry.Kind == manifest.HardLink {
		return l.entry.Target
	}
	return l.entry.Path
}

// wanted are the files that are restored, by their first names: those of which a name was chosen. All names that the
// volume has for such a file go back, for they share its content.
func (l *linkPlan) wanted() (map[string]bool, error) {
	wanted, first := map[string]bool{}, map[string]bool{}
	for _, e := range l.entries {
		wanted[e.first()] = wanted[e.first()] || !e.alone
		if e.entry.Kind != manifest.HardLink {
			first[e.entry.Path] = true
		}
	}
	for _, e := range l.entries {
		if !e.alone && !first[e.first()] {
			return nil, fmt.Errorf("restore %q: it is another name of %q, which is gone, and was not chosen: %w", e.entry.Path, e.first(), errdefs.ErrConflict)
		}
	}
	return wanted, nil
}

// planLinks decides which files can stay, and which names have to be made anew. A file cannot stay if it has a name
// outside of the volume, or names that belong to different files in the manifest.
func (p *planner) planLinks() error {
	var wanted map[string]bool // nil: all
	if p.Chosen != nil {
		var err error
		if wanted, err = p.links.wanted(); err != nil {
			return err
		}
	}
	foreign := p.foreignInodes()
	kept := map[string]uint64{} // inode that stays, by first name
	for _, l := range p.links.entries {
		if wanted != nil && !wanted[l.first()] {
			continue
		}
		isFirst := l.entry.Kind != manifest.HardLink
		switch {
		case isFirst && l.there != nil && l.there.canBecome(l.entry) && !foreign[l.there.stat.Ino]:
			kept[l.entry.Path] = l.there.stat.Ino
			p.keep(l.there, l.entry, l.slot)
		case !isFirst && l.there != nil && kept[l.entry.Target] == l.there.stat.Ino:
			// It is a name of the right file already.
		case l.there != nil:
			p.replace(l.there, l.entry, l.slot)
		default:
			p.addStep(step{ordinal: l.ordinal, action: actCreate}, l.change, dataLength(l.entry))
		}
	}
	return nil
}

// foreignInodes are the files that must not be written to: they have names
// outside of the volume, or names that belong to different files in the manifest.
func (p *planner) foreignInodes() map[uint64]bool {
	owner := map[uint64]string{}
	foreign := map[uint64]bool{}
	for _, l := range p.links.entries {
		if l.there == nil {
			continue
		}
		inode := l.there.stat.Ino
		first, claimed := owner[inode]
		if claimed && first != l.first() || l.there.stat.Nlink > 1 && p.links.names[inode] != uint64(l.there.stat.Nlink) { //nolint:unconvert // narrower on arm64
			foreign[inode] = true
		}
		owner[inode] = l.first()
	}
	return foreign
}
