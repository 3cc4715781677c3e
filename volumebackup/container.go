package volumebackup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// The labels of a worker's container: the journal.
const (
	LabelPurpose = labels.Prefix + "worker.purpose" // what it is doing, for people
	labelFrozen  = labels.Prefix + "worker.frozen"  // JSON list: IDs of the containers that are paused for it
	labelKept    = labels.Prefix + "worker.kept"    // "true": the journal says more, it is somebody else's to repair
)

// removeTimeout bounds the removal of a worker, which also happens after Ctrl-C.
const removeTimeout = 20 * time.Second

// containerLauncher runs workers as containers on the engine.
type containerLauncher struct {
	docker Docker
	store  string
	plugin string // its version, for the journal

	mu    sync.Mutex
	image string // the worker's, once it has been found
}

func (l *containerLauncher) launch(ctx context.Context, j job) (conn, error) {
	id, err := l.make(ctx, j)
	if cerrdefs.IsNotFound(err) { // the image was removed after it had been found
		l.forgetImage()
		id, err = l.make(ctx, j)
	}
	if err != nil {
		return nil, err
	}
	w := &workerConn{docker: l.docker, id: id, name: j.name, detached: context.WithoutCancel(ctx)}
	if err := w.attachAndStart(ctx); err != nil {
		return nil, errors.Join(err, w.Close()) //nolint:contextcheck // the worker goes also when ctx has ended
	}
	return w, nil
}

// make makes the worker's container, and its image if the engine does not have it.
func (l *containerLauncher) make(ctx context.Context, j job) (id string, err error) {
	image, err := l.ensureImage(ctx)
	if err != nil {
		return "", err
	}
	config, host, err := l.configure(image, j)
	if err != nil {
		return "", err
	}
	return l.create(ctx, config, host, j)
}

// capabilities are those that reading and writing file metadata needs.
var capabilities = []string{
	"CHOWN",           // owners
	"DAC_OVERRIDE",    // reading and writing what others own
	"DAC_READ_SEARCH", // directories that only their owner may search
	"FOWNER",          // modes, times and xattrs of what others own
	"FSETID",          // setuid and setgid bits
	"MKNOD",           // device nodes
	"SETFCAP",         // file capabilities
	"SYS_ADMIN",       // trusted.* xattrs
}

// configure describes the container of a worker: no network, nothing writable
// but the mounts, nothing allowed that file metadata does not need.
func (l *containerLauncher) configure(image string, j job) (*container.Config, *container.HostConfig, error) {
	frozen, err := json.Marshal(j.frozen)
	if err != nil {
		return nil, nil, fmt.Errorf("write journal: %w", err)
	}
	journal := map[string]string{
		labels.KeyVersion: labels.SchemaVersion, LabelPurpose: j.purpose, labelFrozen: string(frozen),
	}
	maps.Copy(journal, JournalLabels(l.plugin))
	if len(j.journal) > 0 {
		journal[labelKept] = "true"
		maps.Copy(journal, j.journal)
	}
	marks := map[string]string{labels.KeyVersion: labels.SchemaVersion}
	config := &container.Config{
		Image: image, User: "0:0", OpenStdin: true, StdinOnce: true,
		AttachStdin: true, AttachStdout: true, AttachStderr: true, NetworkDisabled: true,
		Labels: journal,
	}
	host := &container.HostConfig{
		NetworkMode: network.NetworkNone, ReadonlyRootfs: true,
		CapDrop: []string{"ALL"}, CapAdd: capabilities,
		// label=disable: relabelling a volume of a million files takes minutes.
		SecurityOpt: []string{"no-new-privileges", "label=disable"},
		LogConfig:   container.LogConfig{Type: "none"},
		Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: l.store, Target: "/store",
			VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: marks},
		}},
	}
	for _, m := range j.mounts {
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: m.Volume, Target: fmt.Sprintf("/mnt/%d", m.Number), ReadOnly: m.ReadOnly,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		})
	}
	return config, host, nil
}

// workerConn is the conversation with a worker's container.
type workerConn struct {
	docker   Docker
	id       string
	name     string          // empty: any
	detached context.Context //nolint:containedctx // only for removing the container, after everything else was cancelled
	stream   types.HijackedResponse
	stdout   *io.PipeReader
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
	return nil
}

func (w *workerConn) Read(b []byte) (int, error)  { return w.stdout.Read(b) }
func (w *workerConn) Write(b []byte) (int, error) { return w.stream.Conn.Write(b) }

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

// removeWorker ends a worker and removes its container. That somebody else is
// doing so, or has, is as good.
func removeWorker(ctx context.Context, docker Docker, word string) error {
	err := docker.ContainerRemove(ctx, word, container.RemoveOptions{Force: true})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
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

// namePrefix begins the name of every worker. A name is given by who makes a
// container; labels may come with somebody's image.
const namePrefix = "cua-snapshot-"

// IsWorker tells our workers from containers that only bear the same labels, such
// as those of an image that was made to look like one.
func IsWorker(c container.Summary) bool {
	if _, labelled := c.Labels[LabelPurpose]; !labelled {
		return false
	}
	// The engine names the image by its ID if two clients have imported it at once.
	ofImage := strings.HasPrefix(c.Image, workerRepository+":") || strings.HasPrefix(c.Image, "sha256:")
	return ofImage && slices.ContainsFunc(c.Names, func(name string) bool { return strings.HasPrefix(name, "/"+namePrefix) })
}

// settled ends the name of a worker whose operation is over.
const settled = "-settled"

// IsSettled tells by the name of a worker that its operation is over: done, or
// taken back.
func IsSettled(worker string) bool { return strings.HasSuffix(worker, settled) }

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
	const shown = 6
	name := namePrefix + w.id[:shown] + settled
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

// Explain adds the worker's last words to an error.
func (w *workerConn) Explain(err error) error {
	if words := w.stderr.String(); words != "" {
		return fmt.Errorf("%w (worker: %s)", err, words)
	}
	return err
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
