//go:build linux

package archive

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// copyTree copies a folder as cp -a does, into one that is there.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cp", "-a", from+"/.", to).CombinedOutput()
	assert.NilError(t, err, "%s", out)
}

// TestACopiedStoreTrustsNoStat copies a store and a volume to another place, and changes files of the copy so that size
// and times are what the head says. Inodes and change times are not, so the head is not believed; what it knows of
// content is, so nothing is stored twice.
func TestACopiedStoreTrustsNoStat(t *testing.T) {
	w := newWorld(t)
	old := time.Now().Add(-time.Hour)
	large := archivetest.Random(1, 3<<20)
	for name, content := range map[string][]byte{"same": large, "changed": []byte("one"), "large": archivetest.Random(2, 2<<20)} {
		w.write(name, content)
		assert.NilError(t, os.Chtimes(w.path(name), old, old))
	}
	w.snapshot()

	there := &world{t: t, dir: t.TempDir(), volume: archivetest.Dir(t), next: 100}
	copyTree(t, w.dir, there.dir)
	copyTree(t, w.volume, there.volume)
	there.write("changed", []byte("two"))
	content := archivetest.Random(2, 2<<20)
	content[1<<20] ^= 1
	there.write("large", content)
	for _, name := range []string{"changed", "large"} {
		assert.NilError(t, os.Chtimes(there.path(name), old, old))
	}
	there.open()
	want := archivetest.Describe(t, there.volume)
	id, taken := there.snapshot()
	assert.Assert(t, taken.Stored < 1<<20, "%d bytes are stored, though one block and a small file are new", taken.Stored)
	copied := archivetest.Dir(t)
	there.restore(id, "copy", copied)
	archivetest.Equal(t, archivetest.Describe(t, copied), want)
	there.noWarnings()

	// The store that was copied goes on by itself.
	id, _ = w.snapshot()
	copied = archivetest.Dir(t)
	w.restore(id, "copy", copied)
	archivetest.Equal(t, archivetest.Describe(t, copied), archivetest.Describe(t, w.volume))
	heads, err := filepath.Glob(filepath.Join(there.dir, "volumes", "*", "head"))
	assert.NilError(t, err)
	assert.Assert(t, len(heads) > 0)
}
