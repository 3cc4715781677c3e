//go:build linux

package archive

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// nest makes directories in each other below a directory, and a file in the last one.
func nest(t *testing.T, dir, name string, levels int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH, 0)
	assert.NilError(t, err)
	for range levels {
		assert.NilError(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_PATH, 0)
		assert.NilError(t, err)
		closeFD(fd)
		fd = next
	}
	file, err := unix.Openat(fd, "file", unix.O_WRONLY|unix.O_CREAT, 0o644)
	assert.NilError(t, err)
	_, err = unix.Write(file, []byte("at the bottom"))
	assert.NilError(t, err)
	closeFD(file)
	closeFD(fd)
}

// fewFiles lets the process open few files, as many as a store, two volumes and their workers need.
func fewFiles(t *testing.T) {
	t.Helper()
	var before unix.Rlimit
	assert.NilError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	assert.NilError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 4 * openLevels, Max: before.Max}))
	t.Cleanup(func() { assert.NilError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
}

// heap is what is in use, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestADeepTreeComesBack is deeper than the process may have files open.
func TestADeepTreeComesBack(t *testing.T) {
	const name, levels = "a-name-of-20-letters", 1000
	w := newWorld(t)
	w.volume = tmpfs(t)
	nest(t, w.volume, name, levels)
	w.write("z", []byte("behind"))
	fewFiles(t)
	id, archive := w.snapshot()
	assert.Equal(t, archive.Skipped, int64(0))
	assert.Equal(t, archive.Entries, int64(levels+3))
	target := tmpfs(t)
	w.restore(id, "copy", target)
	again := w.snapshotOf(target)
	assert.Equal(t, w.root(again), w.root(id))

	// In place half of it goes, and other directories come instead.
	tree, err := openTree(target)
	assert.NilError(t, err)
	defer func() { assert.NilError(t, tree.close()) }()
	middle := strings.TrimSuffix(strings.Repeat(name+"/", levels/2), "/")
	at := newPlace(tree)
	dir, last, err := at.holder(middle)
	assert.NilError(t, err)
	assert.NilError(t, unix.Renameat(dir, last, dir, "other"))
	at.close()
	result := w.restore(id, "copy", target)
	assert.Equal(t, result.Changes[Created].Entries, result.Changes[Deleted].Entries)
	again = w.snapshotOf(target)
	assert.Equal(t, w.root(again), w.root(id))
	w.noWarnings()
}

func (w *world) root(id string) manifest.Sum {
	w.t.Helper()
	m, err := w.store.OpenManifest(id, 0)
	assert.NilError(w.t, err)
	defer m.Close()
	assert.NilError(w.t, m.Each(func(*manifest.Entry) error { return nil }))
	return m.Summary().Root
}

// TestADeepTreeTakesLittleMemory has 90 MB of paths. It looks at the bottom, where every level above is in memory.
func TestADeepTreeTakesLittleMemory(t *testing.T) {
	const levels, limit = 3000, 6 << 20
	w := newWorld(t)
	w.volume = tmpfs(t)
	nest(t, w.volume, "a-name-of-20-letters", levels)
	tree, err := openTree(w.volume)
	assert.NilError(t, err)
	defer func() { assert.NilError(t, tree.close()) }()
	atTheBottom := func(what string, before int64) {
		t.Helper()
		used := heap() - before
		assert.Check(t, used < limit, "%s: %d bytes", what, used)
	}
	before := heap()
	assert.NilError(t, tree.walk(t.Context(), func(f *found) error {
		if strings.HasSuffix(f.path, "/file") {
			atTheBottom("walk", before)
		}
		return nil
	}))
	id, _ := w.snapshot()
	m, err := w.store.OpenManifest(id, 0)
	assert.NilError(t, err)
	before = heap()
	assert.NilError(t, m.Each(func(e *manifest.Entry) error {
		if e.Kind == manifest.Regular {
			atTheBottom("manifest", before)
		}
		return nil
	}))
	m.Close()

	for name, snapshot := range map[string]string{"create all": id, "delete all": w.snapshotOf(archivetest.Dir(t))} {
		volume := Mount{Key: "new", Path: w.volume}
		if snapshot == id {
			volume.Path = archivetest.Dir(t)
		}
		into, err := openTree(volume.Path)
		assert.NilError(t, err)
		r := &restore{
			RestoreOptions: RestoreOptions{Snapshot: snapshot, Mount: volume}, store: w.store, tree: into,
			counter: &Counter{}, maxHeld: limit,
		}
		before = heap()
		assert.NilError(t, r.makePlan(t.Context()))
		atTheBottom("plan to "+name, before)
		runtime.KeepAlive(r)
		assert.NilError(t, into.close())
	}
}

// snapshotOf makes a snapshot of another directory than the volume's.
func (w *world) snapshotOf(dir string) string {
	w.t.Helper()
	defer func(volume string) { w.volume = volume }(w.volume)
	w.volume = dir
	id, _ := w.snapshot(Idle)
	return id
}

// TestWhatIsTooDeepIsLeftOut keeps everything but what the format cannot hold, of which it names the first.
func TestWhatIsTooDeepIsLeftOut(t *testing.T) {
	const levels = 2000
	w := newWorld(t)
	w.volume = tmpfs(t)
	name := strings.Repeat("n", 200)
	nest(t, w.volume, name, levels)
	w.write("z", []byte("behind"))
	fewFiles(t)
	const fits = manifest.MaxPath / 201
	before := heap()
	id, archive := w.snapshot()
	assert.Assert(t, heap()-before < 40<<20)
	assert.Equal(t, archive.Skipped, int64(1))
	assert.Equal(t, archive.Entries, int64(fits+2))
	assert.Equal(t, len(w.warnings), 1)
	assert.Assert(t, strings.HasSuffix(w.warnings[0], fmt.Sprintf("left out, with what is in it: a path of %d bytes, of 65535 at most", (fits+1)*201-1)))
	w.warnings = nil
	w.restore(id, "vol", w.volume) // takes away what is too deep
	assert.NilError(t, os.Remove(w.path("z")))
	w.restore(id, "vol", w.volume)
	again, archive := w.snapshot()
	assert.Equal(t, archive.Skipped, int64(0))
	assert.Equal(t, w.root(again), w.root(id))
	w.noWarnings()
}

// TestPathList finds every path again.
func TestPathList(t *testing.T) {
	paths := []string{"", "a", "a/b", "a/b/c", "a/bc", "a/bc/d", "a/c", "ab", "ab/c/d", "ab/c/d/e", "a/late"}
	var l pathList
	for _, path := range paths {
		l.add(path)
	}
	for n, path := range paths {
		assert.Equal(t, l.path(n), path)
	}
	n := len(paths)
	assert.NilError(t, l.backward(func(path string) error {
		n--
		assert.Equal(t, path, paths[n])
		return nil
	}))
	assert.Equal(t, n, 0)
}
