//go:build linux

package archive

import (
	"os"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

// secure makes sure that there is a way back from next to what the volume holds now.
func (w *world) secure(now, next string) (SecureResult, error) {
	w.t.Helper()
	return Secure(w.t.Context(), w.store, SecureOptions{
		Now: Ref{Snapshot: now}, Next: Ref{Snapshot: next}, Mount: w.mount(),
	}, w, &Counter{})
}

// rotPiece flips a bit in the stored copy of each piece of a file.
func (w *world) rotPiece(id, path string) {
	w.t.Helper()
	r, err := w.store.OpenManifest(id, 0)
	assert.NilError(w.t, err)
	defer r.Close()
	assert.NilError(w.t, r.Each(func(e *manifest.Entry) error {
		if e.Path == path {
			for _, p := range e.Pieces {
				w.flip(w.pack(id), p.At.Offset+int64(p.At.Stored)/2)
			}
		}
		return nil
	}))
}

// TestSecureRepairsWhatGoingBackNeeds damages what a restore is about to change or delete, in every way in which
// an entry can go.
func TestSecureRepairsWhatGoingBackNeeds(t *testing.T) {
	w := newWorld(t)
	large := archivetest.Random(1, 2<<20)
	w.write("large", large)
	w.write("linked", archivetest.Random(3, 3000))
	assert.NilError(t, os.Link(w.path("linked"), w.path("name")))
	w.write("stays", archivetest.Random(4, 3000))
	w.write("kind", []byte("a file"))
	w.write("goes", []byte("goes"))
	safe, _ := w.snapshot(Idle)
	want := archivetest.Describe(t, w.volume)

	w.write("large", append(archivetest.Random(9, 300<<10), large[300<<10:]...))
	assert.NilError(t, os.Remove(w.path("name")))
	assert.NilError(t, os.Remove(w.path("kind")))
	assert.NilError(t, os.Symlink("stays", w.path("kind")))
	assert.NilError(t, os.Remove(w.path("goes")))
	w.write("comes", []byte("comes"))
	target, _ := w.snapshot(Idle)
	w.restore(safe, "vol", w.volume)
	now, _ := w.snapshot(Idle)
	w.noWarnings()

	result, err := w.secure(now, target)
	assert.NilError(t, err)
	assert.Equal(t, result.Repaired, int64(0))
	assert.Assert(t, result.Checked < 600<<10, "%d: only what changes is read", result.Checked)
	for _, path := range []string{"large", "linked", "kind", "goes"} {
		w.rotPiece(safe, path)
	}
	result, err = w.secure(now, target)
	assert.NilError(t, err)
	assert.Equal(t, result.Repaired, int64(5), "two blocks, and three small files")
	assert.Equal(t, len(w.warnings), 1)
	assert.Assert(t, strings.Contains(w.warnings[0], "damaged in snapshots/"+safe+"/0.tar: 5 of them were stored again"), "%v", w.warnings)
	w.restore(target, "vol", w.volume)
	w.restore(now, "vol", w.volume)
	archivetest.Equal(t, archivetest.Describe(t, w.volume), want)
	again, err := w.secure(now, target)
	assert.NilError(t, err)
	assert.Equal(t, again.Repaired, int64(0))
	w.remove(now, target, safe)
	packs, err := os.ReadDir(w.dir + "/snapshots")
	assert.NilError(t, err)
	assert.Equal(t, len(packs), 0, "what repairs have added goes as well")
}

// TestSecureFailsWithoutAWayBack has the volume differ from what is damaged.
func TestSecureFailsWithoutAWayBack(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("before"))
	target, _ := w.snapshot(Idle)
	w.write("file", []byte("now"))
	now, _ := w.snapshot(Idle)
	w.rotPiece(now, "file")
	w.write("file", []byte("newer"))
	_, err := w.secure(now, target)
	assert.Assert(t, isDamage(err), "%v", err)
	assert.ErrorContains(t, err, `the copy of "file" in snapshots/`+now+`/0.tar`)
	assert.ErrorContains(t, err, "the file has changed since the snapshot")
	assert.NilError(t, os.Remove(w.path("file")))
	_, err = w.secure(now, target)
	assert.ErrorContains(t, err, "no such file")
	left, err := os.ReadDir(w.dir + "/tmp")
	assert.NilError(t, err)
	assert.Equal(t, len(left), 0)
}

// TestRepairIsWholeOrNotThere has each change fail that a repair makes.
func TestRepairIsWholeOrNotThere(t *testing.T) {
	for _, crash := range []bool{false, true} {
		withFaults(t, crash, func(t *testing.T, open opener) bool {
			w, target, _ := faultyWorld(t)
			w.write("small", []byte("now"))
			w.write("large", archivetest.Random(7, 2<<20))
			now, _ := w.snapshot(Idle)
			want := archivetest.Describe(t, w.volume)
			w.rotPiece(now, "small")
			w.rotPiece(now, "large")
			s, err := open(w)
			if err != nil {
				return true
			}
			_, err = Secure(t.Context(), s, SecureOptions{
				Now: Ref{Snapshot: now}, Next: Ref{Snapshot: target}, Mount: w.mount(),
			}, w, &Counter{})
			assert.NilError(t, s.Close())
			w.open()
			_, again := w.secure(now, target)
			assert.NilError(t, again)
			w.remove() // sweeps what is left over
			w.restore(target, "vol", w.volume)
			w.restore(now, "vol", w.volume)
			archivetest.Equal(t, archivetest.Describe(t, w.volume), want)
			return err != nil
		})
	}
}
