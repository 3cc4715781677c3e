//go:build linux

package archive

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// flip changes one bit of a file in the store.
func (w *world) flip(path string, offset int64) (undo func()) {
	w.t.Helper()
	change := func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		assert.NilError(w.t, err)
		var b [1]byte
		_, err = f.ReadAt(b[:], offset)
		assert.NilError(w.t, err)
		b[0] ^= 0x10
		_, err = f.WriteAt(b[:], offset)
		assert.NilError(w.t, err)
		assert.NilError(w.t, f.Close())
	}
	change()
	return change
}

// TestDamageStopsARestore flips bits all over the store: a restore either does not need
// the place, and is exact, or stops before it touches the volume.
func TestDamageStopsARestore(t *testing.T) {
	w := newWorld(t)
	w.write("large", archivetest.Random(1, 1<<20+9))
	w.write("small", archivetest.Random(2, 3000))
	w.write("tiny", []byte("tiny"))
	want := archivetest.Describe(t, w.volume)
	id, _ := w.snapshot()
	w.write("large", archivetest.Random(4, 100))
	w.write("small", []byte("changed"))
	assert.NilError(t, os.Remove(w.path("tiny")))
	changed := archivetest.Describe(t, w.volume)
	dir := filepath.Join(w.dir, "snapshots", id)
	stopped := 0
	for _, name := range []string{"0.tar", "0.man"} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		assert.NilError(t, err)
		for offset := int64(0); offset < info.Size(); offset += 1 + info.Size()/300 {
			undo := w.flip(path, offset)
			_, err := w.tryRestore(id, "vol", w.volume)
			undo()
			if err == nil {
				archivetest.Equal(t, archivetest.Describe(t, w.volume), want)
				w.write("large", archivetest.Random(4, 100))
				w.write("small", []byte("changed"))
				assert.NilError(t, os.Remove(w.path("tiny")))
				changed = archivetest.Describe(t, w.volume)
				continue
			}
			var damaged *store.DamagedError
			assert.Assert(t, errors.As(err, &damaged), "%s at %d: %v", name, offset, err)
			assert.Equal(t, damaged.Pack, filepath.Join("snapshots", id, name))
			assert.Assert(t, name != "0.tar" || damaged.Path != "" && damaged.Offset > 0 && damaged.Offset <= offset)
			archivetest.Equal(t, archivetest.Describe(t, w.volume), changed)
			stopped++
		}
	}
	assert.Assert(t, stopped > 400, "%d", stopped)
}

// TestDamageInANewVolume leaves the volume as empty as it was.
func TestDamageInANewVolume(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	id, _ := w.snapshot()
	pack := filepath.Join(w.dir, "snapshots", id, "0.tar")
	info, err := os.Stat(pack)
	assert.NilError(t, err)
	w.flip(pack, info.Size()/2)
	target := archivetest.Dir(t)
	_, err = w.tryRestore(id, "copy", target)
	var damaged *store.DamagedError
	assert.Assert(t, errors.As(err, &damaged), "%v", err)
	left, err := os.ReadDir(target)
	assert.NilError(t, err)
	assert.Equal(t, len(left), 0)
}

func TestVerifyFindsDamage(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	id, _ := w.snapshot()
	for _, name := range []string{"0.tar", "0.man"} {
		path := filepath.Join(w.dir, "snapshots", id, name)
		info, err := os.Stat(path)
		assert.NilError(t, err)
		w.flip(path, info.Size()/3)
		var found []*store.DamagedError
		v := w.store.NewVerification(func(d *store.DamagedError) { found = append(found, d) })
		assert.NilError(t, v.Archive(t.Context(), id, 0, nil))
		assert.Assert(t, len(found) > 0, name)
	}
}

// TestDamagedHeadIsOnlySlow expects that a snapshot and a restore do without it.
func TestDamagedHeadIsOnlySlow(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	id, first := w.snapshot()
	want := archivetest.Describe(t, w.volume)
	// A head of its own, as the first one is the manifest as well.
	w.restore(id, "vol", w.volume)
	assert.NilError(t, w.store.DropHead("vol"))
	w.restore(id, "vol", w.volume)
	head := filepath.Join(w.dir, "volumes", "vol", "head")
	info, err := os.Stat(head)
	assert.NilError(t, err)
	for _, part := range []int64{0, 1, 2, 3} {
		w.flip(head, part*(info.Size()-1)/3)
		again, second := w.snapshot(Live)
		assert.Equal(t, second.Root, first.Root)
		w.checkStore(again, want)
		w.restore(id, "vol", w.volume)
		assert.NilError(t, w.store.DropHead("vol"))
		w.restore(id, "vol", w.volume)
	}
	assert.Assert(t, len(w.warnings) >= 4, "%v", w.warnings)
}

func TestOtherRootIsDamage(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("x"))
	id, _ := w.snapshot()
	o := RestoreOptions{Snapshot: id, Mount: w.mount(), Root: &manifest.Sum{1}}
	_, err := Restore(t.Context(), w.store, o, w, &Counter{})
	var damaged *store.DamagedError
	assert.Assert(t, errors.As(err, &damaged), "%v", err)
}

// A flipped bit anywhere in a pack or in a manifest is found.
func TestVerifyFindsEveryFlippedBit(t *testing.T) {
	w := newWorld(t)
	w.write("large", archivetest.Random(1, 1<<20+9))
	w.write("small", archivetest.Random(2, 3000))
	w.write("text", bytes.Repeat([]byte("words that are worth compressing\n"), 9000))
	for n := 99; n < 250; n += 3 {
		w.write(strings.Repeat("n", n), []byte("a long name"))
	}
	id, _ := w.snapshot()
	damages := func(quick bool) (count int) {
		v := w.store.NewVerification(func(*store.DamagedError) { count++ })
		v.Quick = quick
		assert.NilError(t, v.Archive(t.Context(), id, 0, nil))
		return count
	}
	assert.Equal(t, damages(false), 0)
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"0.tar", "0.man"} {
		path := filepath.Join(w.dir, "snapshots", id, name)
		info, err := os.Stat(path)
		assert.NilError(t, err)
		for i := range int64(550) {
			offset := i // zstd gives no meaning to some bits of its header
			if i >= 50 {
				offset = random.Int64N(info.Size())
			}
			undo := w.flip(path, offset)
			assert.Assert(t, damages(false) > 0, "%s at %d of %d", name, offset, info.Size())
			undo()
		}
	}
	assert.Equal(t, damages(false), 0)
}

// Without reading content, what is gone or too short is found.
func TestAQuickVerificationFindsWhatIsGone(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	id, _ := w.snapshot()
	pack := filepath.Join(w.dir, "snapshots", id, "0.tar")
	quick := func() (count int) {
		v := w.store.NewVerification(func(*store.DamagedError) { count++ })
		v.Quick = true
		assert.NilError(t, v.Archive(t.Context(), id, 0, nil))
		return count
	}
	assert.Equal(t, quick(), 0)
	info, err := os.Stat(pack)
	assert.NilError(t, err)
	assert.NilError(t, os.Truncate(pack, info.Size()-512))
	assert.Assert(t, quick() > 0)
	assert.NilError(t, os.Remove(pack))
	assert.Assert(t, quick() > 0)
}
