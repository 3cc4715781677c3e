//go:build linux

package archive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// pack is where a snapshot of the volume keeps its content.
func (w *world) pack(id string) string { return filepath.Join(w.dir, "snapshots", id, "0.tar") }

// checkSnapshotOf verifies one snapshot and restores it into a new volume.
func (w *world) checkSnapshotOf(id string, want []string) {
	w.t.Helper()
	v := w.store.NewVerification(func(d *store.DamagedError) { w.t.Error(d) })
	assert.NilError(w.t, v.Archive(w.t.Context(), id, 0, nil))
	target := archivetest.Dir(w.t)
	w.restore(id, "copy", target)
	archivetest.Equal(w.t, archivetest.Describe(w.t, target), want)
}

// TestBackupHealsAPack damages the pack of an earlier snapshot: the next snapshot does not rely on it,
// says so, and the one after that is as cheap as ever.
func TestBackupHealsAPack(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"missing": os.Remove,
		"short":   func(path string) error { return os.Truncate(path, 100_000) },
		"swapped": func(path string) error { return os.WriteFile(path, archivetest.Random(9, 1<<20), 0o600) },
		"a link":  func(path string) error { return swapForLink(path, path+".moved") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			archivetest.Build(t, w.volume)
			w.write("large", archivetest.Random(1, 2<<20))
			first, _ := w.snapshot()
			w.write("new", []byte("new"))
			second, _ := w.snapshot()
			want := archivetest.Describe(t, w.volume)
			w.noWarnings()
			assert.NilError(t, damage(w.pack(first)))
			w.open() // another worker
			third, healed := w.snapshot()
			w.checkSnapshotOf(third, want)
			assert.Equal(t, len(w.warnings), 1, "%v", w.warnings)
			assert.Assert(t, strings.Contains(w.warnings[0], "snapshots/"+first+"/0.tar is damaged"), "%v", w.warnings)
			assert.Assert(t, healed.Stored > 2<<20, "%d", healed.Stored)
			w.warnings = nil
			w.open()
			fourth, cheap := w.snapshot()
			w.checkSnapshotOf(fourth, want)
			w.noWarnings()
			assert.Assert(t, cheap.Stored < 100_000, "%d", cheap.Stored)
			_, err := w.tryRestore(second, "copy", archivetest.Dir(t))
			assert.Assert(t, isDamage(err), "%v", err) // as was said
		})
	}
}

func swapForLink(path, moved string) error {
	if err := os.Rename(path, moved); err != nil {
		return err
	}
	return os.Symlink(moved, path)
}

// TestNothingIsPublishedOnDamage damages a pack after the last pass.
func TestNothingIsPublishedOnDamage(t *testing.T) {
	w := newWorld(t)
	w.write("file", archivetest.Random(1, 5000))
	first, _ := w.snapshot(Idle)
	b, err := w.begin("second")
	assert.NilError(t, err)
	_, err = b.Pass(t.Context(), Idle, w, &Counter{})
	assert.NilError(t, err)
	assert.NilError(t, os.Remove(w.pack(first)))
	_, err = b.Publish(w)
	assert.Assert(t, isDamage(err), "%v", err)
	assert.NilError(t, b.Discard())
	ids, err := w.store.Snapshots()
	assert.NilError(t, err)
	assert.DeepEqual(t, ids, []string{first})
	second, _ := w.snapshot()
	w.checkSnapshotOf(second, archivetest.Describe(t, w.volume))
}
