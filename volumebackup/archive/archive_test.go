//go:build linux

package archive

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// world is a store, one volume, and what has been warned of.
type world struct {
	t      testing.TB
	dir    string
	store  *store.Store
	volume string
	next   int
	// longestWrite is none, so that tests need not wait until a write from before must have landed.
	longestWrite time.Duration

	mu       sync.Mutex
	warnings []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), volume: archivetest.Dir(t)}
	w.open()
	return w
}

func (w *world) open() {
	w.t.Helper()
	s, err := store.Open(w.dir)
	assert.NilError(w.t, err)
	w.t.Cleanup(func() { assert.NilError(w.t, s.Close()) })
	w.store = s
}

func (w *world) Warn(mount int, path, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, fmt.Sprintf("%d %q: %s", mount, path, message))
}

func (w *world) noWarnings() {
	w.t.Helper()
	assert.Equal(w.t, len(w.warnings), 0, "%v", w.warnings)
}

func (w *world) mount() Mount { return Mount{Number: 0, Key: "vol", Path: w.volume} }

func (w *world) begin(id string) (*Backup, error) {
	w.t.Helper()
	return begin(w.t.Context(), w.longestWrite, w.store, id, []Mount{w.mount()})
}

// snapshot archives the volume in passes of the given modes.
func (w *world) snapshot(modes ...Mode) (string, Archive) {
	w.t.Helper()
	id := fmt.Sprintf("20260102-030405-%06x", w.next)
	w.next++
	if len(modes) == 0 {
		modes = []Mode{Live, Frozen}
	}
	b, err := w.begin(id)
	assert.NilError(w.t, err)
	defer func() { assert.NilError(w.t, b.Discard()) }()
	for _, mode := range modes {
		_, err := b.Pass(w.t.Context(), mode, w, &Counter{})
		assert.NilError(w.t, err)
	}
	archives, err := b.Publish(w)
	assert.NilError(w.t, err)
	return id, archives[0]
}

// restore restores into a volume.
func (w *world) restore(id, name, path string) RestoreResult {
	w.t.Helper()
	result, err := w.tryRestore(id, name, path)
	assert.NilError(w.t, err)
	return result
}

func (w *world) tryRestore(id, name, path string) (RestoreResult, error) {
	o := RestoreOptions{Snapshot: id, Mount: Mount{Key: name, Path: path}}
	return restoreAfter(w.t.Context(), w.longestWrite, w.store, o, w, &Counter{})
}

func TestRestoreIntoNewVolume(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	want := archivetest.Describe(t, w.volume)
	id, _ := w.snapshot()
	copied := archivetest.Dir(t)
	w.restore(id, "copy", copied)
	archivetest.Equal(t, archivetest.Describe(t, copied), want)
	archivetest.Equal(t, archivetest.Describe(t, w.volume), want)
	w.noWarnings()
}
