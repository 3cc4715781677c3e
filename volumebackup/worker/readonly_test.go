//go:build linux

package worker

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive/archivetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// protect makes the store read-only, as it is for workers that only look.
func (w *world) protect() {
	w.t.Helper()
	assert.NilError(w.t, unix.Mount(w.store, w.store, "", unix.MS_BIND, ""))
	w.t.Cleanup(func() { assert.NilError(w.t, unix.Unmount(w.store, unix.MNT_DETACH)) })
	assert.NilError(w.t, unix.Mount("", w.store, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}

func TestWhatOnlyLooksNeedsNoStoreThatCanBeWritten(t *testing.T) {
	w := newWorld(t)
	archivetest.Build(t, w.volume(0))
	mount := protocol.Mount{Number: 0, Key: "data"}
	root := w.snapshot(w.connect(), "first", mount).Archives[0].Root
	w.volume(1)
	w.protect()
	c := w.connect()
	for name, look := range map[string]func() error{
		"check": func() error {
			return c.Check(t.Context(), protocol.CheckRequest{Snapshot: "first", Root: root, Mount: &mount})
		},
		"check a volume that is yet to be made": func() error {
			return c.Check(t.Context(), protocol.CheckRequest{Snapshot: "first", Root: root, Beside: true})
		},
		"plan": func() error {
			_, err := c.Restore(t.Context(), protocol.RestoreRequest{Snapshot: "first", Root: root, Mount: mount, DryRun: true}, nil)
			return err
		},
		"plan for a new volume": func() error {
			_, err := c.Restore(t.Context(), protocol.RestoreRequest{
				Snapshot: "first", Root: root, Mount: protocol.Mount{Number: 1, Key: "new"}, DryRun: true,
			}, nil)
			return err
		},
		"list": func() error {
			_, err := c.List(t.Context(), protocol.ListRequest{Snapshot: "first", Root: root}, func(protocol.Entry) {})
			return err
		},
		"verify": func() error {
			_, err := c.Verify(t.Context(), protocol.VerifyRequest{}, nil)
			return err
		},
		"usage": func() error {
			_, err := c.Usage(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { assert.NilError(t, look()) })
	}
}

func TestReadingMakesNoStore(t *testing.T) {
	w := newWorld(t)
	w.protect()
	_, err := w.connect().List(t.Context(), protocol.ListRequest{Snapshot: "first"}, func(protocol.Entry) {})
	assert.ErrorIs(t, err, protocol.NotFound)
	left, err := os.ReadDir(filepath.Clean(w.store))
	assert.NilError(t, err)
	assert.Equal(t, len(left), 0)
}

// A pass says what only a worker with more rights can make again.
func TestAPassTellsWhatTheVolumeNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		add              func(path string) error
		devices, trusted bool
	}{
		"plain files": {add: func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		"a FIFO":      {add: func(path string) error { return unix.Mkfifo(path, 0o600) }},
		"a device":    {add: func(path string) error { return unix.Mknod(path, unix.S_IFCHR, int(unix.Mkdev(1, 3))) }, devices: true},
		"a trusted xattr": {add: func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return unix.Setxattr(path, "trusted.test", []byte("x"), 0)
		}, trusted: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			assert.NilError(t, tc.add(filepath.Join(w.volume(0), "entry")))
			c := w.connect()
			for _, id := range []string{"first", "second"} { // the second takes it from the head
				assert.NilError(t, c.Begin(t.Context(), protocol.BeginRequest{Snapshot: id, Mounts: []protocol.Mount{{Key: "v"}}}, nil))
				found, err := c.Pass(t.Context(), protocol.Idle, nil)
				assert.NilError(t, err)
				assert.Equal(t, found.Archives[0].Devices, tc.devices)
				assert.Equal(t, found.Archives[0].Trusted, tc.trusted)
				_, err = c.Publish(t.Context(), protocol.PublishRequest{}, nil)
				assert.NilError(t, err)
			}
		})
	}
}
