package volumebackup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-units"
)

// removeTimeout bounds the removal of a worker, which also happens after Ctrl-C.
const removeTimeout = 20 * time.Second

// workerConn is the conversation with a worker's container.
type workerConn struct {
	docker   Docker
	id       string
	name     string          // empty: any
	detached context.Context //nolint:containedctx // only for removing the container, after everything else was cancelled
	patience time.Duration   // with a worker that somebody has paused
	tell     Progress
	stream   types.HijackedResponse
	stdout   *io.PipeReader
	heard    atomic.Bool   // it has said something lately
	ended    chan struct{} // closed when the worker's output ends
	stderr   tail
	once     sync.Once
	closed   error
}

func (w *workerConn) attachAndStart(ctx context.Context) error {
	stream, err := w.docker.ContainerAttach(ctx, w.id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	w.stream = stream
	reader, writer := io.Pipe()
	w.stdout, w.ended = reader, make(chan struct{})
	go func() {
		defer close(w.ended)
		_, err := stdcopy.StdCopy(writer, &w.stderr, stream.Reader)
		_ = writer.CloseWithError(err)
	}()
	if err := w.docker.ContainerStart(ctx, w.id, container.StartOptions{}); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	go w.watch(writer) //nolint:contextcheck // it watches until the worker ends
	return nil
}

// ID is that of the worker's container.
func (w *workerConn) ID() string { return w.id }

func (w *workerConn) Read(b []byte) (int, error) {
	n, err := w.stdout.Read(b)
	w.heard.Store(true)
	return n, err
}

func (w *workerConn) Write(b []byte) (int, error) { return w.stream.Conn.Write(b) }

const (
	// watchPoll is how long a worker may say nothing before it is looked at.
	watchPoll = 2 * time.Second
	// pausedPatience is how long a paused worker is waited for at most: others may
	// stand still for it.
	pausedPatience = 10 * time.Second
)

// PausedError means that somebody has paused a worker, and did not let it go on.
type PausedError struct {
	Worker string // the container's name
}

func (e *PausedError) Error() string {
	return fmt.Sprintf("the worker, container %s, is paused", e.Worker)
}

// watch looks after a worker that says nothing for long. One that is paused would
// be waited for without end.
func (w *workerConn) watch(writer *io.PipeWriter) {
	polls := time.NewTicker(watchPoll)
	defer polls.Stop()
	for waited := time.Duration(0); ; {
		select {
		case <-w.ended:
			return
		case <-polls.C:
		}
		name, paused := w.isPaused()
		switch {
		case w.heard.Swap(false) || !paused:
			waited = 0
			continue
		case waited >= w.patience:
			_ = writer.CloseWithError(&PausedError{Worker: name})
			return
		case waited == 0:
			w.tell.status(fmt.Sprintf("waiting for container %s, which is paused: docker unpause %[1]s", name))
		}
		waited += watchPoll
	}
}

func (w *workerConn) isPaused() (name string, paused bool) {
	if w.heard.Load() {
		return "", false
	}
	ctx, cancel := context.WithTimeout(w.detached, removeTimeout)
	defer cancel()
	c, err := w.docker.ContainerInspect(ctx, w.id)
	if err != nil {
		return "", false
	}
	return strings.TrimPrefix(c.Name, "/"), c.State.Paused
}

// endGrace is how long a worker may take to clear away what is unfinished.
const endGrace = 3 * time.Second

// Close ends the worker and removes its container. The end of its input tells it
// to drop what is unfinished and to end; it is removed by force if that takes long.
func (w *workerConn) Close() error {
	w.once.Do(func() { w.closed = w.remove() })
	return w.closed
}

func (w *workerConn) remove() error {
	if w.stream.Conn != nil {
		_ = w.stream.CloseWrite()
		defer w.stream.Close()
		go func() { _, _ = io.Copy(io.Discard, w.stdout) }() // what it still says must not hold it up
		select {
		case <-w.ended:
		case <-time.After(endGrace):
		}
	}
	ctx, cancel := context.WithTimeout(w.detached, removeTimeout)
	defer cancel()
	return removeWorker(ctx, w.docker, w.id)
}

// removalPoll is how often a worker is looked at that somebody else removes.
const removalPoll = 10 * time.Millisecond

// removeWorker ends a worker and removes its container. That somebody else has done so,
// or is doing so, is as good: the engine does, once a worker without a lock ends.
func removeWorker(ctx context.Context, docker Docker, word string) error {
	err := docker.ContainerRemove(ctx, word, container.RemoveOptions{Force: true})
	switch {
	case cerrdefs.IsConflict(err):
		awaitRemoval(ctx, docker, word)
		return nil
	case err != nil && !cerrdefs.IsNotFound(err):
		return fmt.Errorf("remove worker: %w", err)
	}
	return nil
}

// awaitRemoval waits, not for ever, until a container is gone that somebody else removes.
func awaitRemoval(ctx context.Context, docker Docker, word string) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	for {
		if _, err := docker.ContainerInspect(ctx, word); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(removalPoll):
		}
	}
}

// Abandon ends the worker; its container stays.
func (w *workerConn) Abandon() error {
	w.once.Do(func() {
		w.closed = w.stream.CloseWrite()
		w.stream.Close()
	})
	return w.closed
}

// settled ends the name of a worker whose operation is over.
const settled = "-settled"

// IsSettled tells by the name of a worker that its operation is over: done, or
// taken back.
func IsSettled(worker string) bool { return strings.HasSuffix(worker, settled) }

// SettledName is the name of a worker whose operation is over.
func SettledName(workerID string) string {
	const shown = 6
	return namePrefix + workerID[:shown] + settled
}

// ErrLost means that a worker which held a lock has ended, or that another command
// has taken it for dead.
var ErrLost = errors.New("the worker that held the lock has ended")

// Held asks the engine.
func (w *workerConn) Held(ctx context.Context) error {
	c, err := w.docker.ContainerInspect(ctx, w.id)
	if cerrdefs.IsNotFound(err) {
		return ErrLost
	}
	if err != nil {
		return fmt.Errorf("look whether the lock is held: %w", err)
	}
	if !c.State.Running || w.name != "" && strings.TrimPrefix(c.Name, "/") != w.name {
		return ErrLost
	}
	return nil
}

// Release gives the container another name: the one thing about it that can be
// changed, and by one call. If that fails, the name tells whether only the answer
// was lost.
func (w *workerConn) Release(ctx context.Context) error {
	name := SettledName(w.id)
	err := w.docker.ContainerRename(ctx, w.id, name)
	if err == nil {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	c, inspectErr := w.docker.ContainerInspect(after, w.id)
	if inspectErr == nil && strings.TrimPrefix(c.Name, "/") == name {
		return nil
	}
	return fmt.Errorf("rename worker: %w", err)
}

// Explain adds to an error why the worker has ended, if it has, and its last words.
func (w *workerConn) Explain(err error) error {
	if words := w.stderr.String(); words != "" {
		err = fmt.Errorf("%w (worker: %s)", err, words)
	}
	if w.wasKilled() {
		err = fmt.Errorf("%w (the worker was killed, most likely because it needed more memory than its limit of %s)", err, units.BytesSize(memoryLimit))
	}
	return err
}

// statusKilled is the exit status of a process that SIGKILL has ended, as the
// kernel does when memory runs out.
const statusKilled = 137

// wasKilled tells whether a worker that has ended did not end by itself.
func (w *workerConn) wasKilled() bool {
	select {
	case <-w.ended:
	default:
		return false
	}
	ctx, cancel := context.WithTimeout(w.detached, endGrace)
	defer cancel()
	for {
		c, err := w.docker.ContainerInspect(ctx, w.id)
		if err != nil || !c.State.Running {
			return err == nil && (c.State.OOMKilled || c.State.ExitCode == statusKilled)
		}
		select { // its output ends a moment before it does
		case <-ctx.Done():
			return false
		case <-time.After(repairPoll):
		}
	}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const limit = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if len(t.kept) > limit {
		t.kept = bytes.Clone(t.kept[len(t.kept)-limit:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
