//go:build linux

package archive

import (
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// Several volumes become what one archive says; only the first one reads the packs.
func TestRestoreEachReadsTheContentOnce(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	assert.NilError(t, os.WriteFile(filepath.Join(w.volume, "large"), archivetest.Random(7, 20<<20), 0o640))
	want := archivetest.Describe(t, w.volume)
	id, archived := w.snapshot()
	var mounts []Mount
	for n, key := range []string{"a", "b", "c"} {
		mounts = append(mounts, Mount{Number: n, Key: key, Path: archivetest.Dir(t)})
	}
	results, err := RestoreEach(t.Context(), w.store, RestoreOptions{Snapshot: id}, mounts, w, &Counter{})
	assert.NilError(t, err)
	assert.Equal(t, len(results), len(mounts))
	for n, m := range mounts {
		assert.Equal(t, results[n].Entries, archived.Entries)
		archivetest.Equal(t, archivetest.Describe(t, m.Path), want)
	}
	w.noWarnings()

	// Without the packs the others still come from the first, as long as that has it.
	packs, err := filepath.Glob(filepath.Join(w.dir, "snapshots", id, "*.tar"))
	assert.NilError(t, err)
	assert.Assert(t, len(packs) > 0)
	for _, pack := range packs {
		assert.NilError(t, os.Truncate(pack, 0))
	}
	w.open()
	o := RestoreOptions{Snapshot: id, Mount: Mount{Key: "d", Path: archivetest.Dir(t)}, sibling: mounts[0].Path}
	_, err = Restore(t.Context(), w.store, o, w, &Counter{})
	assert.NilError(t, err)
	archivetest.Equal(t, archivetest.Describe(t, o.Mount.Path), want)
	assert.NilError(t, os.Truncate(filepath.Join(mounts[0].Path, "large"), 100))
	o.Mount = Mount{Key: "e", Path: archivetest.Dir(t)}
	_, err = Restore(t.Context(), w.store, o, w, &Counter{})
	assert.Assert(t, isDamage(err), "%v", err) // of the packs, where it comes from then
}
