//go:build linux

package archive

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// settle waits until all change times in the volume are old enough to be believed.
func (w *world) settle() {
	w.t.Helper()
	for {
		recent := false
		tree, err := openTree(w.volume)
		assert.NilError(w.t, err)
		now, err := coarseNow()
		assert.NilError(w.t, err)
		assert.NilError(w.t, tree.walk(w.t.Context(), func(f *found) error {
			recent = recent || isRecent(timestamp(f.stat.Ctim), now)
			return nil
		}))
		assert.NilError(w.t, tree.close())
		if !recent {
			return
		}
		<-time.After(granularity)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.volume, name) }

func (w *world) write(name string, content []byte) {
	w.t.Helper()
	assert.NilError(w.t, os.WriteFile(w.path(name), content, 0o644))
}

// bytesRead makes a snapshot in one pass and says how much of the volume was read.
func (w *world) bytesRead(mode Mode) int64 {
	w.t.Helper()
	b, err := w.begin("x")
	assert.NilError(w.t, err)
	defer func() { assert.NilError(w.t, b.Discard()) }()
	results, err := b.Pass(w.t.Context(), mode, w, &Counter{})
	assert.NilError(w.t, err)
	return results[0].Read
}

func TestCleanFilesAreNotRead(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	w.settle()
	w.snapshot(Live)
	assert.Equal(t, w.bytesRead(Live), int64(0))
	w.write("small", []byte("new"))
	assert.Equal(t, w.bytesRead(Live), int64(3))
}

func TestOldTimesDoNotHideAChange(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("before"))
	old := time.Unix(1_000_000_000, 0)
	assert.NilError(t, os.Chtimes(w.path("file"), old, old))
	w.settle()
	w.snapshot()
	w.write("file", []byte("after!"))
	assert.NilError(t, os.Chtimes(w.path("file"), old, old))
	w.checkSnapshot()
}

// checkSnapshot makes a snapshot and expects that it restores to what the volume holds now.
func (w *world) checkSnapshot(modes ...Mode) string {
	w.t.Helper()
	want := archivetest.Describe(w.t, w.volume)
	id, _ := w.snapshot(modes...)
	w.checkRestore(id, want)
	return id
}

// checkRestore restores into an empty volume and compares.
func (w *world) checkRestore(id string, want []string) {
	w.t.Helper()
	target := archivetest.Dir(w.t)
	w.restore(id, "target-"+id, target)
	archivetest.Equal(w.t, archivetest.Describe(w.t, target), want)
	w.noWarnings()
}

// TestFilesReadWhileFrozenAreReadAgain has one that is open for writing, as one has to be that is mapped.
func TestFilesReadWhileFrozenAreReadAgain(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("content"))
	open, err := os.OpenFile(w.path("file"), os.O_WRONLY, 0)
	assert.NilError(t, err)
	defer open.Close()
	w.settle()
	w.snapshot(Frozen)
	assert.Equal(t, w.bytesRead(Live), int64(7))
	w.snapshot(Live)
	assert.Equal(t, w.bytesRead(Live), int64(0))
}

func TestSecondPassReadsWhatChanged(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	w.settle()
	b, err := w.begin("id")
	assert.NilError(t, err)
	defer func() { assert.NilError(t, b.Discard()) }()
	_, err = b.Pass(t.Context(), Live, w, &Counter{})
	assert.NilError(t, err)
	w.write("dir/sub/file", []byte("changed"))
	w.write("new", []byte("created"))
	assert.NilError(t, os.Remove(w.path("small")))
	assert.NilError(t, os.RemoveAll(w.path("names")))
	want := archivetest.Describe(t, w.volume)
	results, err := b.Pass(t.Context(), Frozen, w, &Counter{})
	assert.NilError(t, err)
	assert.Equal(t, results[0].Read, int64(len("changed"+"created")))
	_, err = b.Publish(w)
	assert.NilError(t, err)
	w.checkRestore("id", want)
}

func TestUnchangedContentIsNotStoredAgain(t *testing.T) {
	w := newWorld(t)
	w.write("large", archivetest.Random(1, 4<<20))
	w.write("whole", archivetest.Random(2, 900<<10))
	_, first := w.snapshot()
	content := archivetest.Random(1, 4<<20)
	content[2<<20]++
	w.write("large", content) // one block differs
	assert.NilError(t, os.Rename(w.path("whole"), w.path("renamed")))
	w.write("copy", archivetest.Random(2, 900<<10))
	w.checkSnapshot()
	_, second := w.snapshot()
	assert.Assert(t, first.Stored > 2<<20, "%d", first.Stored)
	assert.Assert(t, second.Stored < 64<<10, "%d", second.Stored)
	ids, err := w.store.Snapshots()
	assert.NilError(t, err)
	assert.Equal(t, len(ids), 3)
}

func TestSupersededContentIsFreed(t *testing.T) {
	w := newWorld(t)
	w.write("file", archivetest.Random(1, 8<<20))
	w.write("stays", archivetest.Random(3, 300<<10))
	b, err := w.begin("id")
	assert.NilError(t, err)
	defer func() { assert.NilError(t, b.Discard()) }()
	_, err = b.Pass(t.Context(), Live, w, &Counter{})
	assert.NilError(t, err)
	w.write("file", archivetest.Random(2, 1<<20))
	want := archivetest.Describe(t, w.volume)
	_, err = b.Pass(t.Context(), Frozen, w, &Counter{})
	assert.NilError(t, err)
	archives, err := b.Publish(w)
	assert.NilError(t, err)
	assert.Assert(t, archives[0].Stored < 1<<20, "%d", archives[0].Stored)
	w.checkRestore("id", want)
}

func TestLinksStayLinks(t *testing.T) {
	w := newWorld(t)
	w.write("b", []byte("one"))
	assert.NilError(t, os.Link(w.path("b"), w.path("a")))
	assert.NilError(t, os.Link(w.path("b"), w.path("c")))
	w.write("other", []byte("two"))
	w.settle()
	first := archivetest.Describe(t, w.volume)
	id := w.checkSnapshot(Live)
	f, err := os.OpenFile(w.path("c"), os.O_WRONLY, 0)
	assert.NilError(t, err)
	_, err = f.WriteAt([]byte("ONE"), 0) // through one of the names
	assert.NilError(t, err)
	assert.NilError(t, f.Close())
	w.settle()
	w.checkSnapshot(Live)
	assert.NilError(t, os.Remove(w.path("a"))) // another name comes first
	w.checkSnapshot(Live)
	assert.NilError(t, os.Remove(w.path("b")))
	assert.NilError(t, os.Link(w.path("other"), w.path("b")))
	w.checkSnapshot(Live)
	w.restore(id, "vol", w.volume)
	archivetest.Equal(t, archivetest.Describe(t, w.volume), first)
}

// TestRestoreInPlaceTouchesOnlyWhatDiffers counts bytes, and watches an inode.
func TestRestoreInPlaceTouchesOnlyWhatDiffers(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	content := archivetest.Random(9, 8<<20)
	w.write("database", content)
	w.settle()
	want := archivetest.Describe(t, w.volume)
	id, _ := w.snapshot(Live)
	inode := w.inode("database")
	for _, head := range []bool{true, false} {
		f, err := os.OpenFile(w.path("database"), os.O_WRONLY, 0)
		assert.NilError(t, err)
		_, err = f.WriteAt([]byte("changed"), 5<<20)
		assert.NilError(t, err)
		assert.NilError(t, f.Close())
		w.write("extra", []byte("extra"))
		assert.NilError(t, os.Remove(w.path("small")))
		if !head {
			assert.NilError(t, w.store.DropHead("vol"))
		}
		result := w.restore(id, "vol", w.volume)
		archivetest.Equal(t, archivetest.Describe(t, w.volume), want)
		assert.Equal(t, w.inode("database"), inode)
		assert.DeepEqual(t, result.Changes, Changes{
			Created: {Entries: 1, Bytes: 6},           // small
			Changed: {Entries: 2, Bytes: blockLength}, // database, and the root's times
			Deleted: {Entries: 1, Bytes: 5},           // extra
		})
	}
	w.noWarnings()
}

func (w *world) inode(name string) uint64 {
	w.t.Helper()
	var st unix.Stat_t
	assert.NilError(w.t, unix.Lstat(w.path(name), &st))
	return st.Ino
}

func TestSnapshotAfterRestoreReadsNothing(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	id, _ := w.snapshot()
	assert.NilError(t, os.RemoveAll(w.path("names")))
	w.restore(id, "vol", w.volume)
	w.settle()
	// What was changed within a tick of the clock before the volume was synced may be read once more.
	assert.Assert(t, w.bytesRead(Live) < 1<<20)
	w.snapshot(Live)
	assert.Equal(t, w.bytesRead(Live), int64(0))
}

func TestRemovedSnapshotIsNotReferredTo(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	w.settle()
	id, first := w.snapshot(Live)
	w.remove(id)
	assert.Equal(t, w.packs(), 0)
	want := archivetest.Describe(t, w.volume)
	again, second := w.snapshot(Live)
	assert.Equal(t, second.Root, first.Root)
	w.checkRestore(again, want)
}

func (w *world) remove(ids ...string) store.Removed {
	w.t.Helper()
	var claims []store.Claim
	for _, id := range ids {
		claims = append(claims, store.Claim{Snapshot: id})
	}
	removed, err := w.store.Remove(w.t.Context(), store.Removal{Snapshots: claims})
	assert.NilError(w.t, err)
	return removed
}

func (w *world) packs() int {
	w.t.Helper()
	packs, err := filepath.Glob(filepath.Join(w.dir, "snapshots", "*", "*.tar"))
	assert.NilError(w.t, err)
	return len(packs)
}

// TestBlocksAreKnownByTheirFingerprints has a file that was written to without being changed: its blocks are not
// hashed and looked for, unless the key is lost. Nothing is stored either way.
func TestBlocksAreKnownByTheirFingerprints(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before func(w *world)
		asks   bool
	}{
		{"the key is there", func(*world) {}, false},
		{"the key is lost", func(w *world) { assert.NilError(w.t, os.Remove(filepath.Join(w.dir, "key"))) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			content := archivetest.Random(1, 3<<20+7)
			w.write("large", content)
			w.settle()
			w.snapshot(Live)
			w.write("large", content)
			want := archivetest.Describe(t, w.volume)
			tc.before(w)
			b, err := w.begin("again")
			assert.NilError(t, err)
			defer func() { assert.NilError(t, b.Discard()) }()
			var asked atomic.Bool // by any of those that read
			load := b.volumes[0].loadIndex
			b.volumes[0].loadIndex = func() error { asked.Store(true); return load() }
			_, err = b.Pass(t.Context(), Live, w, &Counter{})
			assert.NilError(t, err)
			_, err = b.Publish(w)
			assert.NilError(t, err)
			assert.Equal(t, asked.Load(), tc.asks)
			_, err = os.Stat(filepath.Join(w.dir, "snapshots", "again", "0.tar"))
			assert.ErrorIs(t, err, os.ErrNotExist)
			w.checkStore("again", want)
		})
	}
}
