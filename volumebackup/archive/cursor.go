//go:build linux

package archive

import (
	"errors"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// cursor reads a manifest in step with something else. A goroutine decodes ahead of it: that takes
// about as long as the walk over the volume.
type cursor struct {
	reader *store.Manifest
	ahead  chan decoded
	quit   chan struct{}
	// skipped counts the entries that came before the next one.
	skipped int64
	decoded
}

// decoded is a run of entries, and how the manifest went on after them.
type decoded struct {
	entries []*manifest.Entry
	err     error // io.EOF at the end; nil: more follow
}

// What bounds the memory that entries take which are decoded, but not needed yet.
const (
	runEntries = 256
	runBytes   = 512 << 10
	runsAhead  = 2
)

// newCursor begins to read a manifest; nil has no entries. The cursor must be closed.
func newCursor(r *store.Manifest) cursor {
	if r == nil {
		return cursor{decoded: decoded{err: io.EOF}}
	}
	c := cursor{reader: r, ahead: make(chan decoded, runsAhead), quit: make(chan struct{})}
	go c.decode()
	return c
}

// decode reads run after run until the manifest ends, or the cursor is closed.
func (c cursor) decode() {
	defer close(c.ahead)
	for {
		run := readRun(c.reader)
		select {
		case c.ahead <- run:
		case <-c.quit:
			return
		}
		if run.err != nil {
			return
		}
	}
}

func readRun(r *store.Manifest) decoded {
	run := decoded{entries: make([]*manifest.Entry, 0, runEntries)}
	for bytes := 0; len(run.entries) < runEntries && bytes < runBytes; {
		e, err := r.Next()
		if err != nil {
			run.err = err
			break
		}
		bytes += footprint(e)
		run.entries = append(run.entries, e)
	}
	return run
}

// seek skips the entries before path, and returns the one that has it, or nil.
func (c *cursor) seek(path string) (*manifest.Entry, error) {
	for {
		e, err := c.peek()
		if err != nil || e == nil {
			return nil, err
		}
		order := manifest.Compare(e.Path, path)
		if order > 0 {
			return nil, nil //nolint:nilnil // that there is none is no error
		}
		c.skip()
		if order == 0 {
			return e, nil
		}
	}
}

// peek returns the entry that comes next, or nil at the end.
func (c *cursor) peek() (*manifest.Entry, error) {
	for len(c.entries) == 0 {
		if errors.Is(c.err, io.EOF) {
			return nil, nil //nolint:nilnil // the end is no error
		}
		if c.err != nil {
			return nil, c.err
		}
		c.decoded = <-c.ahead
	}
	return c.entries[0], nil
}

// skip goes on to the next entry. There must be one.
func (c *cursor) skip() {
	c.skipped++
	c.entries[0] = nil
	c.entries = c.entries[1:]
}

// drain reads to the end, which checks the manifest as a whole.
func (c *cursor) drain() error {
	for {
		e, err := c.peek()
		if err != nil || e == nil {
			return err
		}
		c.skip()
	}
}

// close waits for what is decoded at the moment, and closes the reader.
func (c *cursor) close() {
	if c.reader == nil {
		return
	}
	close(c.quit)
	for range c.ahead { // until it is closed
	}
	c.reader.Close()
}
