//go:build linux

package archive

import (
	"fmt"
	"unsafe"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// maxHeld bounds what a plan takes in memory, which an archive determines: thousands of
// entries take a few bytes in the store. It is enough for some millions of entries that change.
const maxHeld = 1 << 30

// hold counts memory that stays in use. The walk stops when it is too much.
func (p *planner) hold(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held += int64(bytes)
}

func (p *planner) checkHeld() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held > p.maxHeld {
		return fmt.Errorf("plan the restore: what changes takes more than %d MiB of memory, about %d entries so far: %w",
			p.maxHeld>>20, len(p.plan.steps)+len(p.links.entries), errdefs.ErrResourceExhausted)
	}
	return nil
}

// footprint is what an entry takes in memory, about.
func footprint(e *manifest.Entry) int {
	n := int(unsafe.Sizeof(*e)) + len(e.Path) + len(e.Target) +
		len(e.Holes)*int(unsafe.Sizeof(manifest.Range{})) + len(e.Pieces)*int(unsafe.Sizeof(manifest.Piece{}))
	for i := range e.Xattrs {
		n += int(unsafe.Sizeof(e.Xattrs[i])) + len(e.Xattrs[i].Name) + len(e.Xattrs[i].Value)
	}
	return n
}

// addLink keeps an entry until all names of every file are known.
func (p *planner) addLink(l *linked) {
	n := int(unsafe.Sizeof(*l)) + footprint(l.entry)
	if s := l.there; s != nil {
		n += int(unsafe.Sizeof(*s))
		if s.base != nil {
			n += footprint(s.base)
		}
	}
	p.hold(n)
	p.links.add(l)
}
