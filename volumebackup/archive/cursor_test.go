//go:build linux

package archive

import (
	"fmt"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// openCursor returns a cursor over several runs of entries, files named 000, 001 and so on.
func openCursor(t *testing.T, files int) cursor {
	t.Helper()
	w := newWorld(t)
	for n := range files {
		w.write(fmt.Sprintf("%03d", n), []byte("content"))
	}
	w.snapshot()
	head, err := w.store.OpenHead("vol")
	assert.NilError(t, err)
	return newCursor(head)
}

func TestCursorFindsWhatItIsAskedForInOrder(t *testing.T) {
	const files = 3*runEntries + 7
	c := openCursor(t, files)
	defer c.close()
	root, err := c.peek()
	assert.NilError(t, err)
	assert.Equal(t, root.Kind, manifest.Directory)
	for n := 0; n < files; n += 5 {
		missing, err := c.seek(fmt.Sprintf("%03d", n) + "-")
		assert.NilError(t, err)
		assert.Assert(t, missing == nil)
		next := fmt.Sprintf("%03d", n+1)
		e, err := c.seek(next)
		assert.NilError(t, err)
		assert.Equal(t, e.Path, next)
	}
	assert.NilError(t, c.drain())
	end, err := c.peek()
	assert.NilError(t, err)
	assert.Assert(t, end == nil)
}

func TestCursorThatIsClosedEarlyEndsItsGoroutine(t *testing.T) {
	c := openCursor(t, 5*runEntries)
	_, err := c.peek()
	assert.NilError(t, err)
	c.close()
	_, open := <-c.ahead
	assert.Assert(t, !open)
}

func TestCursorOverNothing(t *testing.T) {
	c := newCursor(nil)
	defer c.close()
	e, err := c.seek("any")
	assert.NilError(t, err)
	assert.Assert(t, e == nil)
	assert.NilError(t, c.drain())
}
