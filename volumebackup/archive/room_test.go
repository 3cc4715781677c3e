//go:build linux

package archive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
)

func TestCheck(t *testing.T) {
	w := newWorld(t)
	w.write("first", archivetest.Random(1, 10_000))
	first, _ := w.snapshot()
	w.write("second", archivetest.Random(2, 10_000))
	second, archive := w.snapshot()
	check := func(o RestoreOptions) error {
		o.Mount = w.mount()
		return Check(t.Context(), w.store, o)
	}
	assert.NilError(t, check(RestoreOptions{Snapshot: second, Root: &archive.Root}))
	assert.ErrorIs(t, check(RestoreOptions{Snapshot: "20010101-000000-000000"}), errdefs.ErrNotFound)
	assert.ErrorIs(t, check(RestoreOptions{Snapshot: second, Root: &manifest.Sum{}}), errdefs.ErrDataLoss)
	undo := w.flip(filepath.Join(w.dir, "snapshots", second, "0.man"), 100)
	assert.ErrorIs(t, check(RestoreOptions{Snapshot: second}), errdefs.ErrDataLoss)
	undo()

	// The second needs what the first has stored.
	assert.NilError(t, os.Remove(filepath.Join(w.dir, "snapshots", first, "0.tar")))
	w.open() // which has no pack open yet
	assert.ErrorIs(t, check(RestoreOptions{Snapshot: second}), errdefs.ErrDataLoss)
}

func TestCheckFindsNoRoom(t *testing.T) {
	w := newWorld(t)
	w.write("file", archivetest.Random(1, 3<<20))
	id, _ := w.snapshot()
	small := archivetest.Dir(t)
	assert.NilError(t, unix.Mount("tmpfs", small, "tmpfs", 0, "size=4m"))
	t.Cleanup(func() { assert.NilError(t, unix.Unmount(small, 0)) })
	o := RestoreOptions{Snapshot: id, Mount: Mount{Key: "small", Path: small}}
	assert.NilError(t, Check(t.Context(), w.store, o))

	// What is there already is not needed again.
	file := filepath.Join(small, "file")
	assert.NilError(t, os.WriteFile(file, archivetest.Random(2, 3<<20), 0o600))
	assert.NilError(t, Check(t.Context(), w.store, o))
	assert.NilError(t, os.Truncate(file, 0))
	held, err := os.Create(file)
	assert.NilError(t, err)
	_, err = held.Write(archivetest.Random(3, 3<<20))
	assert.NilError(t, err)
	assert.NilError(t, os.Remove(file))
	assert.ErrorIs(t, Check(t.Context(), w.store, o), unix.ENOSPC) // an open file without a name keeps its bytes
	assert.NilError(t, held.Close())
	assert.NilError(t, Check(t.Context(), w.store, o))
}

// A volume that is yet to be made has the room that there is beside it.
func TestCheckFindsNoRoomForANewVolume(t *testing.T) {
	w := newWorld(t)
	w.write("file", archivetest.Random(1, 3<<20))
	id, _ := w.snapshot()
	small := archivetest.Dir(t)
	assert.NilError(t, unix.Mount("tmpfs", small, "tmpfs", 0, "size=4m"))
	t.Cleanup(func() { assert.NilError(t, unix.Unmount(small, 0)) })
	o := RestoreOptions{Snapshot: id, Beside: small}
	assert.NilError(t, Check(t.Context(), w.store, o))
	assert.NilError(t, os.WriteFile(filepath.Join(small, "file"), archivetest.Random(2, 2<<20), 0o600))
	assert.ErrorIs(t, Check(t.Context(), w.store, o), unix.ENOSPC)
	assert.NilError(t, Check(t.Context(), w.store, RestoreOptions{Snapshot: id}))
}
