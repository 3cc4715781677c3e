package volumebackup

import (
	"context"
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

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// removeTimeout bounds the removal of a worker, which also happens after Ctrl-C.
const removeTimeout = 20 * time.Second

// workerConn is the conversation with a worker's container.
type workerConn struct {
	docker   Docker
	id       string
	name     string          // empty: any
	idle     bool            // it has nothing to drop when it ends
	detached context.Context //nolint:containedctx // only for removing the container, after everything else was cancelled
	patience time.Duration   // how long to wait for a worker that somebody has paused
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
	// watchPoll is how long a worker may say nothing before watch looks at it.
	watchPoll = 2 * time.Second
	// pausedPatience is how long to wait at most for a paused worker: containers may be frozen meanwhile.
	pausedPatience = 10 * time.Second
)

// PausedError means that somebody has paused a worker and has not unpaused it.
type PausedError struct {
	Worker string // the container's name
}

func (e *PausedError) Error() string {
	return fmt.Sprintf("the worker, container %s, is paused", e.Worker)
}

// watch looks whether a worker that has said nothing for long is paused. Without it, nobody would ever stop waiting for
// a paused one.
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
	c, _, err := w.docker.ContainerInspectWithRaw(ctx, w.id, false)
	if err != nil {
		return "", false
	}
	return strings.TrimPrefix(c.Name, "/"), c.State.Paused
}

// endGrace is how long a worker may take to clear away what is unfinished.
const endGrace = 3 * time.Second

// Close ends the worker and removes its container. The end of its input tells the worker to drop what is unfinished and
// to end. If that takes long, the engine kills it. One that is idle is killed at once: it is never there dead under its
// name, when others who want that would rename it. An engine that is asked to rename and to remove a container at the same
// time may hold its name for ever.
func (w *workerConn) Close() error {
	w.once.Do(func() { w.closed = w.remove() })
	return w.closed
}

func (w *workerConn) remove() error {
	if w.stream.Conn != nil {
		defer w.stream.Close()
		if !w.idle {
			w.awaitEnd()
		}
	}
	ctx, cancel := context.WithTimeout(w.detached, removeTimeout)
	defer cancel()
	return removeWorker(ctx, w.docker, w.id)
}

// awaitEnd has the worker drop what is unfinished and end, for as long as [endGrace].
func (w *workerConn) awaitEnd() {
	_ = w.stream.CloseWrite()
	go func() { _, _ = io.Copy(io.Discard, w.stdout) }() // what it still says must not hold it up
	select {
	case <-w.ended:
	case <-time.After(endGrace):
	}
}

// removeWorker ends a worker and removes its container. It is no error if somebody else has removed it, or is doing so:
// the engine does when a worker without a lock ends.
//
// It is not [dockerop.Engine.RemoveContainer], which does more than is safe here. That one removes anonymous volumes
// together with the container: a worker has none, but it mounts the volumes of others. And it fails if a removal that
// is under way takes long: then a snapshot that is whole would be rolled back because of its worker.
func removeWorker(ctx context.Context, docker Docker, word string) error {
	err := docker.ContainerRemove(ctx, word, container.RemoveOptions{Force: true})
	switch {
	case cerrdefs.IsConflict(err):
		_ = dockerop.AwaitGone(ctx, docker, word) // it is going in any case
		return nil
	case err != nil && !cerrdefs.IsNotFound(err):
		return fmt.Errorf("remove worker: %w", err)
	}
	return nil
}

// Abandon ends the worker; its container stays.
func (w *workerConn) Abandon() error {
	w.once.Do(func() {
		w.closed = w.stream.CloseWrite()
		w.stream.Close()
	})
	return w.closed
}

// Held asks the engine whether the worker still runs under its name.
func (w *workerConn) Held(ctx context.Context) error {
	c, _, err := w.docker.ContainerInspectWithRaw(ctx, w.id, false)
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

// Release renames the container: its name is the one thing about it that can be changed, and one call does it. If the
// call fails, the name tells whether only the answer was lost. If somebody else has cleared up after the worker, or is about
// to, the container is gone or the name is taken: that is [ErrLost].
func (w *workerConn) Release(ctx context.Context) error {
	name := SettledName(w.id)
	err := w.docker.ContainerRename(ctx, w.id, name)
	if err == nil {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	c, _, inspectErr := w.docker.ContainerInspectWithRaw(after, w.id, false)
	if inspectErr == nil && strings.TrimPrefix(c.Name, "/") == name {
		return nil
	}
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return fmt.Errorf("rename worker: %w: %w", ErrLost, err)
	}
	return fmt.Errorf("rename worker: %w", err)
}
