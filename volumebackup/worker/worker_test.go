//go:build linux

package worker

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// world is a store and some volumes, as the directories of a worker container.
type world struct {
	t     testing.TB
	store string
	mnt   string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{t: t, store: t.TempDir(), mnt: t.TempDir()}
}

// volume makes mount n.
func (w *world) volume(n int) string {
	w.t.Helper()
	path := filepath.Join(w.mnt, strconv.Itoa(n))
	assert.NilError(w.t, os.MkdirAll(path, 0o755))
	return path
}

// connect starts a worker and returns the client that talks to it.
func (w *world) connect() *protocol.Client {
	w.t.Helper()
	return w.connectWith(Options{})
}

func (w *world) connectWith(o Options) *protocol.Client {
	w.t.Helper()
	o.StoreRoot, o.MountRoot, o.CgroupRoot = w.store, w.mnt, filepath.Join(w.mnt, "cgroup")
	client, server := net.Pipe()
	done := make(chan error, 1)
	ctx := context.WithoutCancel(w.t.Context()) // it must end by the end of its input
	go func() {
		done <- Serve(ctx, server, server, o)
		_ = server.Close()
	}()
	c := protocol.NewClient(client)
	c.LockTimeout = 10 * time.Second
	w.t.Cleanup(func() {
		assert.NilError(w.t, c.Close())
		if err := <-done; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			w.t.Error(err)
		}
	})
	return c
}

// snapshot archives mounts in a live pass and a frozen one.
func (w *world) snapshot(c *protocol.Client, id string, mounts ...protocol.Mount) protocol.PublishResult {
	w.t.Helper()
	ctx := w.t.Context()
	assert.NilError(w.t, c.Begin(ctx, protocol.BeginRequest{Snapshot: id, Mounts: mounts}, nil))
	for _, mode := range []protocol.Mode{protocol.Live, protocol.Frozen} {
		_, err := c.Pass(ctx, mode, nil)
		assert.NilError(w.t, err)
	}
	result, err := c.Publish(ctx, protocol.PublishRequest{}, nil)
	assert.NilError(w.t, err)
	return result
}
