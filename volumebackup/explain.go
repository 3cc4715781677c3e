package volumebackup

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"
)

// Explain adds the worker's last words to an error and, if the worker has ended, why.
func (w *workerConn) Explain(err error) error {
	if words := w.stderr.String(); words != "" {
		err = fmt.Errorf("%w (worker: %s)", err, words)
	}
	if w.wasKilled() {
		err = fmt.Errorf("%w (the worker was killed, most likely because it needed more memory than its limit of %s)", err, units.BytesSize(memoryLimit))
	}
	return err
}

// statusKilled is the exit status of a process that SIGKILL has ended. The kernel sends it when memory runs out.
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
		c, _, err := w.docker.ContainerInspectWithRaw(ctx, w.id, false)
		if err != nil || !c.State.Running {
			return err == nil && (c.State.OOMKilled || c.State.ExitCode == statusKilled)
		}
		select { // its output ends a moment before it does
		case <-ctx.Done():
			return false
		case <-time.After(takeoverPoll):
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
