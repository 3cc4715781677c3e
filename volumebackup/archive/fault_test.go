//go:build linux

package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

var errCrash = errors.New("the machine stopped here")

// faults makes the n-th change to the store fail. After a crash nothing reaches
// the disk any more.
type faults struct {
	at    int
	crash bool
	count int
	hit   string
}

func (f *faults) fault(op, path string) error {
	f.count++
	if f.count < f.at || f.count > f.at && !f.crash {
		return nil
	}
	if f.hit == "" {
		f.hit = op + " " + filepath.Base(path)
	}
	if f.crash {
		return errCrash
	}
	return unix.ENOSPC
}

// faultyWorld has a small volume, of which one snapshot exists.
func faultyWorld(t *testing.T) (*world, string, []string) {
	t.Helper()
	w := newWorld(t)
	w.write("large", archivetest.Random(1, 2<<20))
	w.write("same", archivetest.Random(2, 5000))
	w.write("small", []byte("before"))
	want := archivetest.Describe(t, w.volume)
	id, _ := w.snapshot()
	return w, id, want
}

// opener opens the store of a world so that it fails somewhere.
type opener func(*world) (*store.Store, error)

// withFaults runs something on the store once for each change that it makes, or for as many as the stride says, with
// that change failing, until it comes through without. Each run begins with a new world.
func withFaults(t *testing.T, crash bool, run func(t *testing.T, open opener) (failed bool)) {
	t.Helper()
	step := archivetest.Stride(t)
	for n := 1; ; n += step {
		f := &faults{at: n, crash: crash}
		var failed bool
		t.Run(fmt.Sprintf("change=%d", n), func(t *testing.T) {
			failed = run(t, func(w *world) (*store.Store, error) { return store.OpenFaulty(w.dir, f.fault) })
			if t.Failed() {
				t.Logf("failed: %s", f.hit)
			}
		})
		if f.hit == "" {
			assert.Assert(t, f.count > 5, "%d changes", f.count)
			assert.Assert(t, !failed)
			return
		}
	}
}

func TestBackupIsWholeOrNotThere(t *testing.T) {
	for _, crash := range []bool{false, true} {
		withFaults(t, crash, func(t *testing.T, open opener) bool {
			w, first, before := faultyWorld(t)
			w.write("small", []byte("after"))
			w.write("new", archivetest.Random(3, 300_000))
			after := archivetest.Describe(t, w.volume)
			err := backupOn(t.Context(), w, open, "second")
			if err == nil {
				w.checkStore("second", after)
			} else if !crash {
				assert.ErrorIs(t, err, unix.ENOSPC)
				left, err := os.ReadDir(filepath.Join(w.dir, "tmp"))
				assert.NilError(t, err)
				assert.Assert(t, len(left) <= 1, "%v", left) // a failing removal leaves its directory
			}
			if ids, err := w.store.Snapshots(); err == nil && len(ids) == 2 {
				w.checkStore("second", after)
				w.remove("second")
			}
			w.checkStore(first, before)
			w.remove() // sweeps what is left over
			w.checkStore(first, before)
			w.checkSnapshot()
			return err != nil
		})
	}
}

// backupOn makes a snapshot in a store that may fail.
func backupOn(ctx context.Context, w *world, open opener, id string) error {
	s, err := open(w)
	if err != nil {
		return err
	}
	defer func() { assert.NilError(w.t, s.Close()) }()
	b, err := Begin(ctx, s, id, []Mount{w.mount()})
	if err != nil {
		return err
	}
	defer func() { _ = b.Discard() }()
	for _, mode := range []Mode{Live, Frozen} {
		if _, err := b.Pass(ctx, mode, w, &Counter{}); err != nil {
			return err
		}
	}
	_, err = b.Publish(w)
	return err
}

// checkStore verifies everything in the store and restores one snapshot.
func (w *world) checkStore(id string, want []string) {
	w.t.Helper()
	w.open()
	ids, err := w.store.Snapshots()
	assert.NilError(w.t, err)
	v := w.store.NewVerification(func(d *store.DamagedError) { w.t.Error(d) })
	for _, id := range ids {
		assert.NilError(w.t, v.Archive(w.t.Context(), id, 0, nil))
	}
	target := archivetest.Dir(w.t)
	w.restore(id, "check", target)
	assert.NilError(w.t, os.RemoveAll(filepath.Join(w.dir, "volumes", "check")))
	archivetest.Equal(w.t, archivetest.Describe(w.t, target), want)
}

func TestRemovalCanStopAnywhere(t *testing.T) {
	for _, crash := range []bool{false, true} {
		withFaults(t, crash, func(t *testing.T, open opener) bool {
			w, first, _ := faultyWorld(t)
			content := archivetest.Random(1, 2<<20)
			content[700_000]++
			w.write("large", content)
			want := archivetest.Describe(t, w.volume)
			second, _ := w.snapshot()
			w.write("small", []byte("last"))
			third, _ := w.snapshot()
			s, err := open(w)
			if err == nil {
				_, err = s.Remove(t.Context(), store.Removal{Snapshots: []store.Claim{{Snapshot: first}, {Snapshot: third}}})
				assert.NilError(t, s.Close())
			}
			w.checkStore(second, want)
			w.checkSnapshot() // from a head that may refer to what is gone
			w.remove(first, third)
			w.checkStore(second, want)
			w.checkSnapshot()
			ids, listErr := w.store.Snapshots()
			assert.NilError(t, listErr)
			w.remove(ids...)
			assert.Equal(t, w.packs(), 0)
			return err != nil
		})
	}
}

func TestRestoreInPlaceCanStopAnywhere(t *testing.T) {
	withFaults(t, true, func(t *testing.T, open opener) bool {
		w, first, before := faultyWorld(t)
		w.write("small", []byte("after"))
		w.write("extra", []byte("extra"))
		w.snapshot()
		s, err := open(w)
		if err == nil {
			o := RestoreOptions{Snapshot: first, Mount: w.mount()}
			_, err = Restore(t.Context(), s, o, w, &Counter{})
			assert.NilError(t, s.Close())
		}
		w.warnings = nil // that the head could not be written is one
		w.restore(first, "vol", w.volume)
		archivetest.Equal(t, archivetest.Describe(t, w.volume), before)
		w.checkSnapshot()
		return err != nil
	})
}

// TestNothingStaysOpen stops in the middle of large files, and counts descriptors.
func TestNothingStaysOpen(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.write(fmt.Sprint(i), archivetest.Random(uint64(i), 6<<20))
	}
	id, _ := w.snapshot(Idle)
	target := archivetest.Dir(t)
	before := descriptors(t)
	for n := range 4 {
		f := &faults{at: 6 + n}
		assert.ErrorIs(t, backupOn(t.Context(), w, func(w *world) (*store.Store, error) {
			assert.NilError(t, w.store.DropHead("vol"))
			return store.OpenFaulty(w.dir, f.fault)
		}, fmt.Sprintf("fails%d", n)), unix.ENOSPC)
	}
	pack := filepath.Join(w.dir, "snapshots", id, "0.tar")
	info, err := os.Stat(pack)
	assert.NilError(t, err)
	w.flip(pack, info.Size()/2+10_000)
	_, err = w.tryRestore(id, "copy", target)
	assert.Assert(t, isDamage(err), "%v", err)
	assert.Equal(t, descriptors(t), before+1, "but for the pack, which stays open for reading")
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	assert.NilError(t, err)
	return len(open)
}
