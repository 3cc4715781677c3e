package volumebackup

import (
	"bufio"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// silentEngine is a fakeEngine whose workers say nothing.
type silentEngine struct {
	*fakeEngine
	far net.Conn
}

func (f *silentEngine) ContainerAttach(context.Context, string, container.AttachOptions) (types.HijackedResponse, error) {
	near, far := net.Pipe()
	f.far = far
	return types.HijackedResponse{Conn: near, Reader: bufio.NewReader(near)}, nil
}

func (f *silentEngine) ContainerStart(context.Context, string, container.StartOptions) error {
	return nil
}

func TestAPausedWorkerIsNotWaitedForWithoutEnd(t *testing.T) {
	for name, wait := range map[string]time.Duration{"as long as a lock": 4 * time.Second, "but not long": time.Hour, "not at all": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &silentEngine{fakeEngine: newFakeEngine(worker(testLock, "paused", time.Now(), nil))}
				f.containers[testLock].State.Running, f.containers[testLock].State.Paused = true, true
				told := 0
				w := workerConn{
					docker: f, id: f.containers[testLock].ID, detached: t.Context(), patience: min(wait, pausedPatience),
					tell: func(protocol.Event) { told++ },
				}
				assert.NilError(t, w.attachAndStart(t.Context()))
				began := time.Now()
				_, err := w.Read(make([]byte, 1))
				var paused *PausedError
				assert.Assert(t, errors.As(err, &paused), "%v", err)
				assert.Equal(t, paused.Worker, testLock)
				assert.Equal(t, time.Since(began), watchPoll+min(wait, pausedPatience))
				assert.Equal(t, told, min(1, int(wait)))
				assert.NilError(t, f.far.Close())
			})
		})
	}
}

// A worker that runs may take as long as it likes.
func TestAWorkerThatRunsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &silentEngine{fakeEngine: newFakeEngine(worker(testLock, "running", time.Now(), nil))}
		w := workerConn{docker: f, id: f.containers[testLock].ID, detached: t.Context()}
		assert.NilError(t, w.attachAndStart(t.Context()))
		time.AfterFunc(time.Hour, func() { _ = f.far.Close() })
		_, err := w.Read(make([]byte, 1))
		var paused *PausedError
		assert.Assert(t, err != nil && !errors.As(err, &paused), "%v", err)
	})
}

// A worker may have something to drop when it ends. One that only holds a lock is never there dead.
func TestAnIdleWorkerIsRemovedWhileItRuns(t *testing.T) {
	for idle, takes := range map[bool]time.Duration{true: 0, false: endGrace} {
		synctest.Test(t, func(t *testing.T) {
			f := &silentEngine{fakeEngine: newFakeEngine(worker(testLock, "running", time.Now(), nil))}
			w := workerConn{docker: f, id: f.containers[testLock].ID, idle: idle, detached: t.Context()}
			assert.NilError(t, w.attachAndStart(t.Context()))
			began := time.Now()
			assert.NilError(t, w.Close())
			assert.Equal(t, time.Since(began), takes)
			assert.DeepEqual(t, f.calls, []string{"remove " + testLock})
			assert.NilError(t, f.far.Close())
		})
	}
}

func TestWorkersThatAreIdle(t *testing.T) {
	for task, is := range map[Task]bool{Hold{}: true, Fill{}: false, Compare{}: false, Replace{}: false} {
		assert.Equal(t, job{name: testLock, rights: WorkerOptions{Task: task, Volumes: []string{"v"}}.rights()}.isIdle(), is)
	}
	assert.Assert(t, LockOptions{MakeStore: true}.job("id").isIdle())
	assert.Assert(t, !job{rights: toHold}.isIdle(), "nobody wants the name of a worker that has none of its own")
}

func TestAWorkerThatWasKilledSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		state container.State
		want  string
	}{
		"by the kernel":            {container.State{OOMKilled: true}, "it ended (the worker was killed, most likely because it needed more memory than its limit of 1GiB)"},
		"by SIGKILL":               {container.State{ExitCode: 137}, "it ended (the worker was killed, most likely because it needed more memory than its limit of 1GiB)"},
		"by nobody, with a status": {container.State{ExitCode: 1}, "it ended"},
	} {
		t.Run(name, func(t *testing.T) {
			c := worker(testLock, "exited", time.Now(), nil)
			c.State = &tc.state
			w := workerConn{docker: newFakeEngine(c), id: c.ID, detached: t.Context(), ended: make(chan struct{})}
			assert.Error(t, w.Explain(errors.New("it ended")), "it ended")
			close(w.ended)
			assert.Error(t, w.Explain(errors.New("it ended")), tc.want)
		})
	}
}
