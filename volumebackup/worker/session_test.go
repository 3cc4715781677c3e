//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

func TestMain(m *testing.M) {
	if roots := os.Getenv(confinedVariable); roots != "" {
		leave(beConfined(roots))
	}
	if os.Getenv(probeVariable) != "" {
		leave(probe())
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/klauspost/compress/zstd.(*Decoder).startStreamDecoder"))
}

// leave ends a process that was started to be something else than a test.
func leave(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // it is the main of that process
	}
	os.Exit(0) //nolint:forbidigo // the same
}

// TestSession is the main job: two volumes, archived together and restored together.
func TestSession(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume(0))
	assert.NilError(t, os.WriteFile(filepath.Join(w.volume(1), "file"), []byte("second volume"), 0o600))
	c := w.connect()
	published := w.snapshot(c, "first", protocol.Mount{Number: 0, Key: "data"}, protocol.Mount{Number: 1, Key: "more"})
	assert.Equal(t, len(published.Archives), 2)
	for n, a := range published.Archives {
		assert.Equal(t, a.Number, n)
		assert.Equal(t, len(a.Root), 64)
		target := w.volume(10 + n)
		request := protocol.RestoreRequest{
			Snapshot: "first", Archive: n, Root: a.Root, Mount: protocol.Mount{Number: 10 + n, Key: "new"},
		}
		result, err := c.Restore(t.Context(), request, nil)
		assert.NilError(t, err)
		assert.Equal(t, result.Entries, a.Entries)
		archivetest.Equal(t, archivetest.Describe(t, target), archivetest.Describe(t, w.volume(n)))
	}
	var names []string
	listed, err := c.List(t.Context(), protocol.ListRequest{Snapshot: "first", Archive: 0}, func(e protocol.Entry) {
		names = append(names, string(e.Path))
	})
	assert.NilError(t, err)
	assert.Equal(t, int64(len(names)), listed.Entries)
	assert.Assert(t, slices.Contains(names, "names/\xff\xfe not utf-8"))
	usage, err := c.Usage(t.Context())
	assert.NilError(t, err)
	assert.Equal(t, len(usage.Snapshots), 1)
	assert.Assert(t, usage.Snapshots[0].Own > 1<<20 && usage.Snapshots[0].Own < usage.Total)
	// this worker has restored, and changes nothing else any more
	removed, err := w.connect().Remove(t.Context(), protocol.RemoveRequest{Seen: &protocol.Seen{Engine: "engine", ImageStore: "overlay2"}, Retention: time.Hour}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(removed.Removed), 0)
}

// TestErrorClasses expects that each failure arrives as what it is.
func TestErrorClasses(t *testing.T) {
	w := newWorld(t)
	w.volume(0)
	c := w.connect()
	mounts := []protocol.Mount{{Number: 0, Key: "v"}}
	w.snapshot(c, "taken", mounts...)
	ctx := t.Context()
	for name, test := range map[string]struct {
		call  func() error
		class protocol.Class
	}{
		"pass without begin": {func() error { _, err := c.Pass(ctx, protocol.Live, nil); return err }, protocol.Invalid},
		"publish nothing":    {func() error { _, err := c.Publish(ctx, protocol.PublishRequest{}, nil); return err }, protocol.Invalid},
		"taken id": {func() error {
			return c.Begin(ctx, protocol.BeginRequest{Snapshot: "taken", Mounts: mounts}, nil)
		}, protocol.Conflict},
		"bad id": {func() error {
			return c.Begin(ctx, protocol.BeginRequest{Snapshot: "../x", Mounts: mounts}, nil)
		}, protocol.Invalid},
		"no such mount": {func() error {
			return c.Begin(ctx, protocol.BeginRequest{Snapshot: "x", Mounts: []protocol.Mount{{Number: 7, Key: "v"}}}, nil)
		}, protocol.Internal},
		"no such snapshot": {func() error {
			_, err := c.Restore(ctx, protocol.RestoreRequest{Snapshot: "gone", Mount: mounts[0]}, nil)
			return err
		}, protocol.NotFound},
		"bad root": {func() error {
			_, err := c.Restore(ctx, protocol.RestoreRequest{Snapshot: "taken", Root: "xyz", Mount: mounts[0]}, nil)
			return err
		}, protocol.Invalid},
	} {
		err := test.call()
		assert.ErrorIs(t, err, test.class, name)
	}
	found, err := c.Verify(ctx, protocol.VerifyRequest{Snapshots: []protocol.VerifySnapshot{{Snapshot: "gone"}}}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(found.Damages), 1)
	assert.NilError(t, os.WriteFile(filepath.Join(w.store, "format"), []byte("cua-store 9\n"), 0o600))
	err = w.connect().Discard(ctx)
	assert.ErrorIs(t, err, protocol.NewerVersion)
	assert.Assert(t, errdefs.IsFailedPrecondition(err))
}

// TestClientGoes expects that nothing is left of a backup whose client is gone.
func TestClientGoes(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume(0))
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), far, far, Options{StoreRoot: w.store, MountRoot: w.mnt, CgroupRoot: filepath.Join(w.mnt, "cgroup")})
	}()
	c := protocol.NewClient(near)
	assert.NilError(t, c.Begin(t.Context(), protocol.BeginRequest{Snapshot: "s", Mounts: []protocol.Mount{{Key: "v"}}}, nil))
	_, err := c.Pass(t.Context(), protocol.Live, nil)
	assert.NilError(t, err)
	assert.Equal(t, w.unfinished(), 1)
	assert.NilError(t, c.Close())
	assert.NilError(t, <-served)
	assert.Equal(t, w.unfinished(), 0)
	removed, err := w.connect().Remove(t.Context(), protocol.RemoveRequest{}, nil) // the lock is free
	assert.NilError(t, err)
	assert.Equal(t, removed.Freed, int64(0))
}

// TestClientGoesDuringARestore cancels it at its first sign of life.
func TestClientGoesDuringARestore(t *testing.T) {
	w := newWorld(t)
	big := filepath.Join(w.volume(0), "big")
	assert.NilError(t, os.WriteFile(big, archivetest.Random(1, 64<<20), 0o600))
	w.snapshot(w.connect(), "s", protocol.Mount{Number: 0, Key: "v"})
	w.volume(1)
	c := w.connect()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Restore(ctx, protocol.RestoreRequest{Snapshot: "s", Mount: protocol.Mount{Number: 1, Key: "new"}}, func(protocol.Event) { cancel() })
	if err != nil { // it may have been quicker than the first progress
		assert.ErrorIs(t, err, context.Canceled)
	}
	cancel()
}

func (w *world) unfinished() int {
	w.t.Helper()
	left, err := os.ReadDir(filepath.Join(w.store, "tmp"))
	assert.NilError(w.t, err)
	return len(left)
}

// TestDiskFull fills a small filesystem: the error says so, the store is as before, and
// works again once there is room.
func TestDiskFull(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, unix.Mount("tmpfs", w.store, "tmpfs", 0, "size=8m"))
	t.Cleanup(func() { assert.NilError(t, unix.Unmount(w.store, unix.MNT_DETACH)) })
	live := w.volume(0)
	assert.NilError(t, os.WriteFile(filepath.Join(live, "small"), []byte("small"), 0o600))
	c := w.connect()
	mount := protocol.Mount{Number: 0, Key: "v"}
	w.snapshot(c, "first", mount)
	want := archivetest.Describe(t, live)
	assert.NilError(t, os.WriteFile(filepath.Join(live, "large"), archivetest.Random(1, 40<<20), 0o600))
	assert.NilError(t, c.Begin(t.Context(), protocol.BeginRequest{Snapshot: "full", Mounts: []protocol.Mount{mount}}, nil))
	_, err := c.Pass(t.Context(), protocol.Live, nil)
	assert.ErrorIs(t, err, protocol.NoSpace)
	assert.Assert(t, errdefs.IsResourceExhausted(err))
	assert.Equal(t, w.unfinished(), 0)
	assert.NilError(t, os.Truncate(filepath.Join(live, "large"), 1<<20))
	w.snapshot(c, "second", mount)
	restored, err := c.Restore(t.Context(), protocol.RestoreRequest{Snapshot: "first", Mount: mount}, nil)
	assert.NilError(t, err)
	assert.Equal(t, restored.Deleted.Entries, int64(1))
	archivetest.Equal(t, archivetest.Describe(t, live), want)
}

func TestGarbageIsAnswered(t *testing.T) {
	w := newWorld(t)
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), far, far, Options{StoreRoot: w.store, MountRoot: w.mnt, CgroupRoot: filepath.Join(w.mnt, "cgroup")})
		_ = far.Close()
	}()
	go func() { _, _ = io.WriteString(near, "garbage\n") }()
	said := make([]byte, 4096)
	n, err := near.Read(said)
	assert.NilError(t, err)
	assert.Equal(t, string(said[:n]), `{"type":"hello","hello":{"protocol":2}}`+"\n")
	n, err = near.Read(said)
	assert.NilError(t, err)
	assert.Assert(t, n > 0)
	assert.NilError(t, near.Close())
	err = <-served
	assert.Assert(t, err == nil || errors.Is(err, io.ErrClosedPipe), "%v", err)
}

// Nobody looks which images are gone when a snapshot is taken, but once a day it says that
// it is time to.
func TestPublishSaysWhenItIsTimeToLook(t *testing.T) {
	w := newWorld(t)
	w.volume(0)
	now := time.Now().Add(time.Minute) // certainly after the store was made
	c := w.connectWith(Options{Now: func() time.Time { return now }})
	taken := 0
	isDue := func() bool {
		taken++
		return w.snapshot(c, fmt.Sprint("s", taken), protocol.Mount{Number: 0, Key: "v"}).LookDue
	}
	assert.Assert(t, !isDue()) // the store is new
	now = now.Add(25 * time.Hour)
	assert.Assert(t, isDue())
	_, err := c.Remove(t.Context(), protocol.RemoveRequest{}, nil)
	assert.NilError(t, err)
	assert.Assert(t, isDue()) // that one did not know what the engine has
	_, err = c.Remove(t.Context(), protocol.RemoveRequest{Seen: &protocol.Seen{Engine: "e", ImageStore: "s"}, Retention: time.Hour}, nil)
	assert.NilError(t, err)
	assert.Assert(t, !isDue())
	now = now.Add(-time.Hour) // a clock that was wrong
	assert.Assert(t, isDue())
}
