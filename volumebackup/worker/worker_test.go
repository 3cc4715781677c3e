//go:build linux

package worker

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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

// connect starts a worker, in a process of its own that is as confined as on an engine, and returns the client that talks to
// it.
func (w *world) connect() *protocol.Client {
	w.t.Helper()
	return w.client(confinedWorker(w.t, w.options(Options{})))
}

// confinedVariable has the test's program be a worker that sees these roots.
const confinedVariable = "DOCKER_SNAPSHOT_TEST_WORKER"

// confinedWorker returns a connection to a worker, and what waits for its end.
func confinedWorker(t testing.TB, o Options) (io.ReadWriteCloser, func() error) {
	t.Helper()
	worker, connection := startConfined(t, o)
	return connection, worker.Wait
}

// startConfined starts a worker, and returns its process and a connection to it.
func startConfined(t testing.TB, o Options) (*exec.Cmd, io.ReadWriteCloser) {
	t.Helper()
	program, err := os.Executable()
	assert.NilError(t, err)
	worker := exec.Command(program)
	// The race detector would have it sleep for a second before it ends.
	worker.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", confinedVariable+"="+strings.Join([]string{o.StoreRoot, o.MountRoot, o.CgroupRoot}, ":"))
	worker.Stderr = os.Stderr
	in, err := worker.StdinPipe()
	assert.NilError(t, err)
	out, err := worker.StdoutPipe()
	assert.NilError(t, err)
	assert.NilError(t, worker.Start())
	return worker, struct {
		io.Reader
		io.WriteCloser
	}{out, in}
}

// beConfined is the worker that confinedWorker starts.
func beConfined(roots string) error {
	of := strings.Split(roots, ":")
	return ServeConfined(context.Background(), //nolint:forbidigo // it is the main of that process
		os.Stdin, os.Stdout, Options{StoreRoot: of[0], MountRoot: of[1], CgroupRoot: of[2]})
}

// connectWith starts a worker in this process: what else the options say cannot be told to another.
func (w *world) connectWith(o Options) *protocol.Client {
	w.t.Helper()
	client, server := net.Pipe()
	done := make(chan error, 1)
	ctx := context.WithoutCancel(w.t.Context()) // it must end by the end of its input
	go func() {
		done <- Serve(ctx, server, server, w.options(o))
		_ = server.Close()
	}()
	return w.client(client, func() error { return <-done })
}

// options are those of a worker in this world.
func (w *world) options(o Options) Options {
	o.StoreRoot, o.MountRoot, o.CgroupRoot = w.store, w.mnt, filepath.Join(w.mnt, "cgroup")
	return o
}

// client talks to a worker until the test is over.
func (w *world) client(connection io.ReadWriteCloser, ended func() error) *protocol.Client {
	w.t.Helper()
	c := protocol.NewClient(connection)
	c.LockTimeout = 10 * time.Second
	w.t.Cleanup(func() {
		assert.NilError(w.t, c.Close())
		if err := ended(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
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
