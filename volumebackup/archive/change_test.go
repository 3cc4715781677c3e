//go:build linux

package archive

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
)

// churn makes files grow, shrink, vanish and change kind until it is stopped.
func churn(t *testing.T, w *world) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for worker := range 2 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				path := w.path(fmt.Sprintf("churn/%d", (n*7+worker)%40))
				switch n % 6 {
				case 0:
					_ = os.WriteFile(path, archivetest.Random(uint64(n), n%3_000_000), 0o644)
				case 1:
					_ = os.Truncate(path, int64(n%2_000_000))
				case 2:
					_ = os.Remove(path)
				case 3:
					_ = os.Mkdir(path, 0o755)
				case 4:
					_ = os.Link(w.path("linked"), path)
				default:
					_ = os.Symlink("x", path)
				}
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// TestFilesChangeWhileTheyAreRead expects a sound archive whatever happens, and an exact one once the writers are frozen.
func TestFilesChangeWhileTheyAreRead(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, os.Mkdir(w.path("churn"), 0o755))
	w.write("linked", []byte("linked"))
	for round := range 6 {
		id := fmt.Sprintf("churn%d", round)
		b, err := w.begin(id)
		assert.NilError(t, err)
		stop := churn(t, w)
		for range 3 {
			_, err = b.Pass(t.Context(), Live, w, &Counter{})
			assert.NilError(t, err)
		}
		stop()
		if round%2 == 0 {
			_, err = b.Pass(t.Context(), Frozen, w, &Counter{})
			assert.NilError(t, err)
		}
		want := archivetest.Describe(t, w.volume)
		w.warnings = nil
		_, err = b.Publish(w)
		assert.NilError(t, err)
		assert.NilError(t, b.Discard())
		if round%2 == 0 {
			w.checkStore(id, want)
			w.noWarnings()
			continue
		}
		w.warnings = nil
		w.restore(id, "torn", archivetest.Dir(t)) // it must restore, to something
	}
}

// TestReadLinkOfWhatIsNoSymlinkAnyMore is what a pass meets when a symlink is replaced between stat and readlink.
func TestReadLinkOfWhatIsNoSymlinkAnyMore(t *testing.T) {
	w := newWorld(t)
	w.write("file", []byte("now a file"))
	root, err := openTree(w.volume)
	assert.NilError(t, err)
	defer func() { assert.NilError(t, root.close()) }()
	_, err = readLink(root.fd(), "file")
	assert.Equal(t, reasonToSkip(err), whyVanished)
}

func TestCancelStopsAndLeavesNothing(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	b, err := w.begin("id")
	assert.NilError(t, err)
	_, err = b.Pass(ctx, Live, w, &Counter{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.NilError(t, b.Discard())
	left, err := os.ReadDir(w.dir + "/tmp")
	assert.NilError(t, err)
	assert.Equal(t, len(left), 0)
	id, _ := w.snapshot()
	target := archivetest.Dir(t)
	_, err = Restore(ctx, w.store, RestoreOptions{Snapshot: id, Mount: Mount{Key: "copy", Path: target}}, w, &Counter{})
	assert.ErrorIs(t, err, context.Canceled)
	entries, err := os.ReadDir(target)
	assert.NilError(t, err)
	assert.Equal(t, len(entries), 0)
}
