//go:build linux

package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// TestProgressTellsTheTotal expects that a client can say how much is left: of a restore, and of
// every pass but the first one ever.
func TestProgressTellsTheTotal(t *testing.T) {
	w := newWorld(t)
	live := w.volume(0)
	const size = 12 << 20
	for i := range 4 {
		assert.NilError(t, os.WriteFile(filepath.Join(live, fmt.Sprint(i)), archivetest.Random(uint64(i), size), 0o600))
	}
	c := w.connectWith(Options{ProgressInterval: time.Millisecond})
	mount := protocol.Mount{Number: 0, Key: "live"}
	pass := func(id string, emit func(protocol.Event)) (read int64) {
		t.Helper()
		assert.NilError(t, c.Begin(t.Context(), protocol.BeginRequest{Snapshot: id, Mounts: []protocol.Mount{mount}}, nil))
		found, err := c.Pass(t.Context(), protocol.Idle, emit)
		assert.NilError(t, err)
		_, err = c.Publish(t.Context(), protocol.PublishRequest{}, nil)
		assert.NilError(t, err)
		return found.Mounts[0].Read
	}
	var last protocol.Progress
	remember := func(e protocol.Event) {
		if e.Type != protocol.TypeProgress {
			return
		}
		last = *e.Progress
		assert.Assert(t, last.Total == 0 || last.Bytes <= last.Total && last.Total <= 4*size, "%+v", last)
	}
	pass("first", remember)
	assert.Assert(t, last.Bytes > 0 && last.Total == 0, "nobody knows: %+v", last)

	time.Sleep(50 * time.Millisecond) // until the times of the files are old enough to be believed
	pass("second", nil)
	assert.NilError(t, os.WriteFile(filepath.Join(live, "0"), archivetest.Random(10, size), 0o600))
	assert.NilError(t, os.WriteFile(filepath.Join(live, "3"), archivetest.Random(13, size), 0o600))
	last = protocol.Progress{}
	read := pass("third", remember)
	assert.Equal(t, last.Total, read, "what is clean is not read: %+v", last)

	w.volume(1)
	last = protocol.Progress{}
	request := protocol.RestoreRequest{Snapshot: "third", Mount: protocol.Mount{Number: 1, Key: "new"}}
	_, err := c.Restore(t.Context(), request, remember)
	assert.NilError(t, err)
	assert.Equal(t, last.Total, int64(4*size))
}
