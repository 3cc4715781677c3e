//go:build linux

package archive

import (
	"os"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// unsynced is a filesystem on which a pass does not sync what it reads: a write through a mapping can
// then land long after the file's times have moved, as a direct write does on a slow disk.
const unsynced writeback = -1

// inFlight is a file to which a write has begun, as its times tell, that has not landed.
type inFlight struct {
	*world
	*mapped
}

func newInFlight(t *testing.T, size int) inFlight {
	t.Helper()
	w := newWorld(t)
	m := mapFile(t, w.path("file"), size)
	m.writeAll(1)
	w.settle()
	w.longestWrite = longestWrite
	return inFlight{world: w, mapped: m}
}

// land ends the write. It moves the file's times only if somebody else syncs the filesystem at the same moment.
func (f inFlight) land() { f.writeAll(2) }

// passes makes passes of a snapshot, which the caller publishes.
func (f inFlight) passes(id string, modes ...Mode) *Backup {
	f.t.Helper()
	b, err := f.begin(id)
	assert.NilError(f.t, err)
	b.volumes[0].writeback = unsynced
	f.more(b, modes...)
	return b
}

func (f inFlight) more(b *Backup, modes ...Mode) {
	f.t.Helper()
	for _, mode := range modes {
		_, err := b.Pass(f.t.Context(), mode, f.world, &Counter{})
		assert.NilError(f.t, err)
	}
}

func (f inFlight) publish(b *Backup) {
	f.t.Helper()
	_, err := b.Publish(f.world)
	assert.NilError(f.t, err)
	assert.NilError(f.t, b.Discard())
}

var inFlightSizes = map[string]int{"small file": 64 << 10, "large file": 3 << 20}

// TestAWriteLandsBetweenPasses expects it in the snapshot.
func TestAWriteLandsBetweenPasses(t *testing.T) {
	for name, size := range inFlightSizes {
		for last, mode := range map[string]Mode{"frozen": Frozen, "idle": Idle} {
			t.Run(name+", "+last, func(t *testing.T) {
				f := newInFlight(t, size)
				b := f.passes("id", Live)
				f.land()
				f.more(b, mode)
				want := archivetest.Describe(t, f.volume)
				f.publish(b)
				f.checkRestore("id", want)
			})
		}
	}
}

// TestAWriteLandsAfterTheLastPass expects it in the next snapshot, and expects that a restore in place
// takes it back.
func TestAWriteLandsAfterTheLastPass(t *testing.T) {
	for name, size := range inFlightSizes {
		for last, modes := range map[string][]Mode{"live": {Live}, "frozen": {Live, Frozen}, "idle": {Idle}} {
			t.Run(name+", "+last, func(t *testing.T) {
				f := newInFlight(t, size)
				before := archivetest.Describe(t, f.volume)
				b := f.passes("id", modes...)
				f.land()
				f.publish(b)
				b = f.passes("next", modes...)
				f.publish(b)
				f.checkRestore("next", archivetest.Describe(t, f.volume))
				f.restore("id", "vol", f.volume)
				archivetest.Equal(t, archivetest.Describe(t, f.volume), before)
			})
		}
	}
}

// TestWhatIsClosedIsSettledAtOnce has files that changed just now. While nobody runs, a file that nobody has open for
// writing is not read again; while somebody does, every file is.
func TestWhatIsClosedIsSettledAtOnce(t *testing.T) {
	w := newWorld(t)
	w.longestWrite = longestWrite
	w.write("closed", []byte("1"))
	w.write("open", []byte("22"))
	open, err := os.OpenFile(w.path("open"), os.O_WRONLY, 0)
	assert.NilError(t, err)
	defer open.Close()
	w.settle()
	for _, tc := range []struct {
		last  Mode
		again int64
	}{{Live, 3}, {Idle, 2}, {Frozen, 2}} {
		w.snapshot(tc.last)
		assert.Equal(t, w.bytesRead(Idle), tc.again, "after a pass of mode %d", tc.last)
	}
}

// TestWhatIsOldIsSettled has a minute that is over.
func TestWhatIsOldIsSettled(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("content"))
	w.settle()
	w.snapshot(Live)
	assert.Equal(t, w.bytesRead(Live), int64(0))
}

// TestWhatARestoreMadeIsSettledAtOnce reads one file of three after a restore in place: the one that was there
// already, and is open for writing.
func TestWhatARestoreMadeIsSettledAtOnce(t *testing.T) {
	w := newWorld(t)
	w.longestWrite = longestWrite
	for _, name := range []string{"a-gone", "b-open", "c-gone"} {
		w.write(name, []byte(name))
	}
	w.settle()
	id, _ := w.snapshot()
	open, err := os.OpenFile(w.path("b-open"), os.O_WRONLY, 0)
	assert.NilError(t, err)
	defer open.Close()
	assert.NilError(t, os.Remove(w.path("a-gone")))
	assert.NilError(t, os.Remove(w.path("c-gone")))
	tree, err := openTree(w.volume)
	assert.NilError(t, err)
	r := &restore{
		RestoreOptions: RestoreOptions{Snapshot: id, Mount: w.mount()}, store: w.store, tree: tree, counter: &Counter{},
		warner: warner{reporter: w}, maxHeld: maxHeld, longestWrite: w.longestWrite,
	}
	assert.NilError(t, r.makePlan(t.Context()))
	assert.NilError(t, r.carryOut(t.Context()))
	w.settle() // as if the volume had taken longer to sync than a tick of the clock
	before := newCursor(nil)
	assert.NilError(t, r.writeHead(t.Context(), &before))
	assert.NilError(t, tree.close())
	made, err := os.OpenFile(w.path("c-gone"), os.O_WRONLY, 0)
	assert.NilError(t, err)
	defer made.Close()
	assert.Equal(t, w.bytesRead(Idle), int64(len("b-open")))
}
