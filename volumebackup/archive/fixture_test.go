//go:build linux

package archive

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// makeFixture makes a store in testdata. That of a version is made once, and read for ever.
var makeFixture = flag.String("make-fixture", "", "make the fixture of this version of the format, such as v1")

const fixtureID = "20260101-000000-abcdef"

// TestReadsEveryVersion restores from the stores of all versions of the format.
func TestReadsEveryVersion(t *testing.T) {
	if *makeFixture != "" {
		buildFixture(t, filepath.Join("testdata", *makeFixture))
	}
	versions, err := filepath.Glob("testdata/v*")
	assert.NilError(t, err)
	assert.Assert(t, len(versions) > 0)
	for _, dir := range versions {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			w := newWorld(t)
			assert.NilError(t, os.RemoveAll(w.dir))
			assert.NilError(t, os.CopyFS(w.dir, os.DirFS(filepath.Join(dir, "store"))))
			w.open()
			v := w.store.NewVerification(func(d *store.DamagedError) { t.Error(d) })
			assert.NilError(t, v.Archive(t.Context(), fixtureID, 0, nil))
			w.restore(fixtureID, "vol", w.volume)
			golden.Assert(t, strings.Join(archivetest.Describe(t, w.volume), "\n"), filepath.Join(filepath.Base(dir), "expected.txt"))
			w.noWarnings()
		})
	}
}

func buildFixture(t *testing.T, dir string) {
	t.Helper()
	assert.NilError(t, os.MkdirAll(dir, 0o755))
	w := newWorld(t)
	w.dir = filepath.Join(dir, "store")
	assert.NilError(t, os.Mkdir(w.dir, 0o755))
	w.open()
	assert.NilError(t, os.Mkdir(w.path("dir"), 0o2750))
	w.write("dir/compressed", []byte(strings.Repeat("compress me ", 500)))
	w.write("dir/raw", archivetest.Random(1, 100))
	w.write("blocks", append(make([]byte, 1<<20), []byte("the end")...))
	w.write(strings.Repeat("long name ", 15), []byte("x"))
	w.write("not utf-8 \xff", nil)
	assert.NilError(t, os.Link(w.path("dir/raw"), w.path("link")))
	assert.NilError(t, os.Symlink("dir/raw", w.path("symlink")))
	assert.NilError(t, unix.Mkfifo(w.path("fifo"), 0o600))
	assert.NilError(t, unix.Mknod(w.path("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	assert.NilError(t, os.WriteFile(w.path("sparse"), []byte("head"), 0o600))
	assert.NilError(t, os.Truncate(w.path("sparse"), 1<<20))
	assert.NilError(t, unix.Setxattr(w.path("dir/raw"), "user.x", []byte("value"), 0))
	assert.NilError(t, os.Chown(w.path("blocks"), 1000, 1000))
	tree, err := openTree(w.volume)
	assert.NilError(t, err)
	times := []unix.Timespec{{Sec: -1, Nsec: 5}, {Sec: -1, Nsec: 5}}
	assert.NilError(t, tree.walk(t.Context(), func(f *found) error {
		return unix.UtimesNanoAt(f.dir, f.name, times, unix.AT_SYMLINK_NOFOLLOW)
	}))
	assert.NilError(t, tree.close())
	b, err := w.begin(fixtureID)
	assert.NilError(t, err)
	_, err = b.Pass(t.Context(), Idle, w, &Counter{})
	assert.NilError(t, err)
	_, err = b.Publish(w)
	assert.NilError(t, err)
	assert.NilError(t, b.Discard())
	assert.NilError(t, os.RemoveAll(filepath.Join(w.dir, "volumes", "vol")))
	assert.NilError(t, os.RemoveAll(filepath.Join(w.dir, "tmp")))
}
