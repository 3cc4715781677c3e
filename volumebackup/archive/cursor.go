//go:build linux

package archive

import (
	"errors"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// cursor reads a manifest in step with something else. A nil reader has no entries.
type cursor struct {
	reader *store.ManifestReader
	next   *store.Entry // nil at the end
	begun  bool
}

// seek skips the entries before path, and returns the one that has it, or nil.
func (c *cursor) seek(path string) (*store.Entry, error) {
	for {
		e, err := c.peek()
		if err != nil || e == nil {
			return nil, err
		}
		order := store.Compare(e.Path, path)
		if order > 0 {
			return nil, nil //nolint:nilnil // that there is none is no error
		}
		c.next, c.begun = nil, false
		if order == 0 {
			return e, nil
		}
	}
}

// peek returns the entry that comes next, or nil at the end.
func (c *cursor) peek() (*store.Entry, error) {
	if c.begun || c.reader == nil {
		return c.next, nil
	}
	e, err := c.reader.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	c.next, c.begun = e, true
	return e, nil
}

// skip goes on to the next entry.
func (c *cursor) skip() { c.next, c.begun = nil, false }

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

func (c *cursor) close() {
	if c.reader != nil {
		c.reader.Close()
	}
}
