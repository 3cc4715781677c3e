//go:build linux

package archive

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// TestManyXattrs needs a filesystem that keeps as many as the kernel can list.
func TestManyXattrs(t *testing.T) {
	w := newWorld(t)
	w.volume = tmpfs(t)
	w.write("file", []byte("content"))
	const count = 3000 // names of 21 bytes: the list has 64 KiB
	for i := range count {
		name := fmt.Sprintf("trusted.%012d", i)
		assert.NilError(t, unix.Setxattr(w.path("file"), name, []byte(name), 0))
	}
	id, _ := w.snapshot()
	target := tmpfs(t)
	w.restore(id, "copy", target)
	archivetest.Equal(t, archivetest.Describe(t, target), archivetest.Describe(t, w.volume))
	w.noWarnings()
}

func tmpfs(t *testing.T) string {
	t.Helper()
	dir := archivetest.Dir(t)
	assert.NilError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=755"))
	t.Cleanup(func() { assert.NilError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// TestWhatDoesNotFitIsReported has a path that is longer than the format allows, and xattrs
// that are larger together.
func TestWhatDoesNotFitIsReported(t *testing.T) {
	w := newWorld(t)
	w.volume = tmpfs(t)
	w.write("z", []byte("behind"))
	w.write("a", []byte("xattrs"))
	value := make([]byte, 64<<10)
	for i := range 300 {
		assert.NilError(t, unix.Setxattr(w.path("a"), fmt.Sprintf("trusted.%d", i), value, 0))
	}
	fd, err := unix.Open(w.volume, unix.O_PATH, 0)
	assert.NilError(t, err)
	const fits = 65536 / 101 // directories
	for range fits + 2 {
		name := strings.Repeat("d", 100)
		assert.NilError(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_PATH, 0)
		assert.NilError(t, err)
		closeFD(fd)
		fd = next
	}
	closeFD(fd)
	for range 2 { // the second time there is a head
		w.warnings = nil
		id, archive := w.snapshot()
		assert.Equal(t, archive.Skipped, int64(2), "a file's xattrs, and the first of two directories")
		assert.Equal(t, archive.Entries, int64(1+fits+2))
		assert.Assert(t, strings.Contains(w.warnings[0], `"a": its extended attributes are left out: `), w.warnings[0])
		assert.Assert(t, strings.Contains(w.warnings[1], "left out, with what is in it: a path of"), w.warnings[1][65000:])
		w.warnings = nil
		target := archivetest.Dir(t)
		w.restore(id, "copy", target)
		content, err := os.ReadFile(filepath.Join(target, "a"))
		assert.NilError(t, err)
		assert.Equal(t, string(content), "xattrs")
		assert.NilError(t, os.RemoveAll(filepath.Join(w.dir, "volumes", "copy")))
	}
}

// TestHolesThatAppearBesideEachOther is what findHoles sees while a file is punched.
func TestHolesThatAppearBesideEachOther(t *testing.T) {
	var holes []manifest.Range
	for _, h := range []manifest.Range{{Offset: 0, Length: 4096}, {Offset: 4096, Length: 4096}, {Offset: 12288, Length: 4096}} {
		holes = addHole(holes, h.Offset, h.Length)
	}
	assert.DeepEqual(t, holes, []manifest.Range{{Offset: 0, Length: 8192}, {Offset: 12288, Length: 4096}})
}

func TestTooManyHoles(t *testing.T) {
	var holes []manifest.Range
	at := int64(0)
	for i := range manifest.MaxHoles + 1000 {
		length := int64(4096)
		if i%10 == 0 {
			length = 1 << 20
		}
		holes = addHole(holes, at, length)
		at += length + 4096
	}
	assert.Assert(t, len(holes) <= manifest.MaxHoles)
	large := 0
	for _, h := range holes {
		if h.Length == 1<<20 {
			large++
		}
	}
	assert.Equal(t, large, (manifest.MaxHoles+1000+9)/10, "the large ones stay")
	assert.Assert(t, slices.IsSortedFunc(holes, func(a, b manifest.Range) int { return int(a.Offset - b.Offset) }))
}

// TestHugeSparseFile is one of which an offset alone is out of the ordinary.
func TestHugeSparseFile(t *testing.T) {
	assert.Equal(t, pieceLength(wholeFile+1), int64(blockLength))
	assert.Equal(t, pieceLength(math.MaxInt64), int64(manifest.MaxPiece))
	w := newWorld(t)
	w.volume = tmpfs(t)
	f, err := os.Create(w.path("huge"))
	assert.NilError(t, err)
	const end = 1 << 50
	_, err = f.WriteAt([]byte("data"), end)
	assert.NilError(t, err)
	assert.NilError(t, f.Close())
	id, _ := w.snapshot()
	target := tmpfs(t)
	w.restore(id, "copy", target)
	copied, err := os.Open(filepath.Join(target, "huge"))
	assert.NilError(t, err)
	content := make([]byte, 4)
	_, err = copied.ReadAt(content, end)
	assert.NilError(t, err)
	assert.Equal(t, string(content), "data")
	assert.NilError(t, copied.Close())
	w.noWarnings()
}

// TestAPlanIsBounded has more names of files and more directories than a plan may keep.
func TestAPlanIsBounded(t *testing.T) {
	for name, fill := range map[string]func(w *world, path string) error{
		"links":       func(w *world, path string) error { return os.Link(w.path("file"), path) },
		"directories": func(_ *world, path string) error { return os.Mkdir(path, 0o755) },
		"files":       func(_ *world, path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("file", nil)
			for i := range 500 {
				assert.NilError(t, fill(w, w.path(fmt.Sprint(i))))
			}
			id, _ := w.snapshot()
			plan := func(limit int64) error {
				tree, err := openTree(archivetest.Dir(t))
				assert.NilError(t, err)
				r := &restore{
					RestoreOptions: RestoreOptions{Snapshot: id, Mount: Mount{Key: "new"}}, store: w.store, tree: tree,
					counter: &Counter{}, maxHeld: limit,
				}
				return errors.Join(r.makePlan(t.Context()), tree.close())
			}
			assert.NilError(t, plan(1<<20))
			assert.ErrorIs(t, plan(10_000), errdefs.ErrResourceExhausted)
		})
	}
}

// TestAHugeFileIsHandedOnAsItComes has 400,000 pieces: no more of them are waiting at a time than fill a
// batch, and nothing is copied.
func TestAHugeFileIsHandedOnAsItComes(t *testing.T) {
	const count = 400_000
	e := &manifest.Entry{Path: "huge", Kind: manifest.Regular, Pieces: make([]manifest.Piece, count)}
	for i := range e.Pieces {
		e.Pieces[i] = manifest.Piece{Offset: int64(i) * blockLength, Length: blockLength}
	}
	next := 0
	p := &pass{batch: newBatch()}
	p.send = func(b *batch) error {
		assert.Assert(t, len(b.items) <= batchCost/blockLength && b.reads)
		for _, it := range b.items {
			assert.Assert(t, it.from == next && it.to == next+1 && it.more == (next < count-1))
			next++
		}
		return nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	assert.NilError(t, p.addLarge(e, nil, &openFile{}))
	runtime.ReadMemStats(&after)
	assert.Equal(t, next+len(p.batch.items), count)
	assert.Assert(t, after.TotalAlloc-before.TotalAlloc < count*1000, "%d bytes", after.TotalAlloc-before.TotalAlloc)
}
