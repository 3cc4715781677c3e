//go:build linux

package archive

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// lie makes the head say of an entry that it is as it was recorded, whatever has happened to it since.
func (w *world) lie(path string) {
	w.t.Helper()
	head, err := w.store.OpenHead("vol")
	assert.NilError(w.t, err)
	defer head.Close()
	assert.NilError(w.t, w.store.WriteHead("vol", func(out *manifest.Writer) error {
		return head.Each(func(e *manifest.Entry) error {
			if e.Path == path {
				var st unix.Stat_t
				assert.NilError(w.t, unix.Lstat(w.path(path), &st))
				e.Cached = manifest.Cached{Inode: st.Ino, Changed: timestamp(st.Ctim)}
				e.Modified = timestamp(st.Mtim)
			}
			return out.Append(e)
		})
	}))
}

// doubting makes a snapshot that does not believe the head.
func (w *world) doubting(d Doubt, modes ...Mode) (string, Archive) {
	w.t.Helper()
	id := fmt.Sprintf("20260102-030405-%06x", w.next)
	w.next++
	b, err := w.begin(id)
	assert.NilError(w.t, err)
	defer func() { assert.NilError(w.t, b.Discard()) }()
	assert.NilError(w.t, b.Doubt(d))
	for _, mode := range modes {
		_, err := b.Pass(w.t.Context(), mode, w, &Counter{})
		assert.NilError(w.t, err)
	}
	archives, err := b.Publish(w)
	assert.NilError(w.t, err)
	return id, archives[0]
}

// A head that lies about content, or about what else there is of an entry, is found, and the snapshot is true.
func TestAHeadThatLiesIsFound(t *testing.T) {
	lies := map[string]func(w *world){
		"small": func(w *world) { w.write("small", []byte("other bytes, as many")) },
		"large": func(w *world) { w.write("large", archivetest.Random(9, 3<<20)) },
		"mode":  func(w *world) { assert.NilError(t, os.Chmod(w.path("mode"), 0o640)) },
		"xattr": func(w *world) { assert.NilError(t, unix.Setxattr(w.path("xattr"), "user.x", []byte("other"), 0)) },
		"link": func(w *world) {
			assert.NilError(t, os.Remove(w.path("link")))
			assert.NilError(t, os.Symlink("else", w.path("link")))
		},
	}
	for name, change := range lies {
		for how, doubt := range map[string]Doubt{"full": {Full: true}, "sample": {Fraction: 1}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				w := newWorld(t)
				w.write("small", []byte("these are some bytes"))
				w.write("large", archivetest.Random(1, 3<<20))
				w.write("mode", nil)
				w.write("xattr", []byte("content"))
				w.write("kept", archivetest.Random(2, 100_000))
				assert.NilError(t, os.Symlink("here", w.path("link")))
				w.settle()
				w.snapshot(Idle)
				change(w)
				w.settle()
				w.lie(name)
				w.snapshot(Idle) // it believes the head, which now lies in a manifest
				w.noWarnings()

				id, taken := w.doubting(doubt, Live, Frozen)
				assert.Equal(t, taken.Contradicted, int64(1))
				assert.Equal(t, len(w.warnings), 1)
				assert.Assert(t, strings.Contains(w.warnings[0], fmt.Sprintf("%q", name)), w.warnings[0])
				w.checkStore(id, archivetest.Describe(t, w.volume))
				assert.Assert(t, taken.Stored < 4<<20, "%d bytes: what was true is stored again", taken.Stored)

				w.warnings = nil
				_, taken = w.doubting(Doubt{Fraction: 1}, Idle)
				assert.Equal(t, taken.Contradicted, int64(0), "the new head lies, too")
			})
		}
	}
}

// A fingerprint that is the same although the block is another one.
func TestAFingerprintThatLiesIsFound(t *testing.T) {
	for how, doubt := range map[string]Doubt{"full": {Full: true}, "sample": {Fraction: 1}} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			content := archivetest.Random(1, 3<<20)
			w.write("large", content)
			w.settle()
			w.snapshot(Idle)
			content[1<<20] ^= 1
			w.write("large", content)
			key, err := w.store.FingerprintKey()
			assert.NilError(t, err)
			head, err := w.store.OpenHead("vol")
			assert.NilError(t, err)
			defer head.Close()
			assert.NilError(t, w.store.WriteHead("vol", func(out *manifest.Writer) error {
				return head.Each(func(e *manifest.Entry) error {
					for i := range e.Pieces {
						e.Pieces[i].Fingerprint = key.Fingerprint(content[e.Pieces[i].Offset:e.Pieces[i].End()])
					}
					return out.Append(e)
				})
			}))
			id, _ := w.doubting(doubt, Live, Frozen)
			w.checkStore(id, archivetest.Describe(t, w.volume))
		})
	}
}

// A full backup refers to nothing in the store that it has not read there.
func TestAFullBackupStoresAgainWhatIsDamaged(t *testing.T) {
	w := newWorld(t)
	w.write("large", archivetest.Random(1, 3<<20))
	w.write("small", archivetest.Random(2, 5000))
	w.settle()
	first, whole := w.snapshot(Idle)
	w.flip(w.pack(first), 700_000)
	id, taken := w.doubting(Doubt{Full: true}, Idle)
	w.noWarnings()
	w.checkSnapshotOf(id, archivetest.Describe(t, w.volume))
	assert.Assert(t, taken.Stored > whole.Stored/20 && taken.Stored < whole.Stored/6, "%d bytes of %d: it is one block of twelve", taken.Stored, whole.Stored)
}

// A sample reads about as much as it should, and no more.
func TestASampleIsAPart(t *testing.T) {
	w := newWorld(t)
	for n := range 500 {
		w.write(fmt.Sprint("file", n), archivetest.Random(uint64(n), 1000))
	}
	w.write("large", archivetest.Random(1, 50<<20))
	w.settle()
	w.snapshot(Idle)
	assert.Equal(t, w.bytesRead(Idle), int64(0))
	b, err := w.begin("sample")
	assert.NilError(t, err)
	defer func() { assert.NilError(t, b.Discard()) }()
	assert.NilError(t, b.Doubt(Doubt{Fraction: 0.1}))
	counter := &Counter{}
	found, err := b.Pass(t.Context(), Idle, w, counter)
	assert.NilError(t, err)
	assert.Assert(t, found[0].Read > 2<<20 && found[0].Read < 10<<20, "%d bytes", found[0].Read)
	w.noWarnings()
}

// Every tenth automatic snapshot takes a sample.
func TestEveryTenthTakesASample(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("content"))
	w.settle()
	w.snapshot(Idle)
	var compared []int
	for n := 1; n <= 30; n++ {
		b, err := w.begin(fmt.Sprint("automatic", n))
		assert.NilError(t, err)
		assert.NilError(t, b.Doubt(Doubt{Fraction: 1, Every: 10}))
		found, err := b.Pass(t.Context(), Idle, w, &Counter{})
		assert.NilError(t, err)
		if found[0].Read > 0 {
			compared = append(compared, n)
		}
		_, err = b.Publish(w)
		assert.NilError(t, err)
		assert.NilError(t, b.Discard())
	}
	assert.DeepEqual(t, compared, []int{10, 20, 30})
}
