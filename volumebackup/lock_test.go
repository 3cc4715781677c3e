package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// pipeConn is a workerConn whose worker is a handler at the other end of a pipe.
type pipeConn struct {
	*workerConn
	pipe net.Conn
}

func (c pipeConn) Read(b []byte) (int, error)  { return c.pipe.Read(b) }
func (c pipeConn) Write(b []byte) (int, error) { return c.pipe.Write(b) }
func (c pipeConn) Abandon() error              { return c.pipe.Close() }
func (c pipeConn) Explain(err error) error     { return err }
func (c pipeConn) Close() error                { return errors.Join(c.pipe.Close(), c.workerConn.Close()) }

// lockService is a service on a fake engine. What its workers are asked for goes to asked, with the worker's ID.
func lockService(f *fakeEngine, asked func(worker string, a protocol.Arguments)) *Service {
	l := launcherOn(f)
	s := &Service{docker: f, lockTimeout: time.Minute}
	s.launch = func(ctx context.Context, j job) (conn, error) {
		config, host, err := l.configure(testImage, j)
		if err != nil {
			return nil, err
		}
		id, err := l.create(ctx, config, host, j)
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		_, c, err := f.find(id)
		if err == nil {
			c.State.Status, c.State.Running = "running", true
		}
		f.mu.Unlock()
		if err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		go func() {
			_ = protocol.Serve(context.WithoutCancel(ctx), far, far, func(_ context.Context, r protocol.Request, _ io.ReadWriter, _ func(protocol.Event)) (any, error) {
				asked(id, r.Arguments)
				return protocol.None{}, nil
			}, func(err error) *protocol.Error {
				return &protocol.Error{Class: protocol.Internal, Message: err.Error()}
			})
			_ = far.Close()
		}()
		return pipeConn{&workerConn{docker: f, id: id, name: j.name, detached: context.WithoutCancel(ctx)}, near}, nil
	}
	return s.At(StoreRef{Name: "s"})
}

// locked are the containers whose lock somebody holds, in the order in which they were locked.
func locked(f *fakeEngine, ids ...string) []string {
	var held []string
	for _, id := range ids {
		if f.containers[LockName(id)] != nil {
			held = append(held, id)
		}
	}
	return held
}

func nobodyAsks(string, protocol.Arguments) { panic("a lock asks its worker for something") }

func TestALockIsOfSeveralContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine()
		var asked []protocol.Arguments
		s := lockService(f, func(_ string, a protocol.Arguments) { asked = append(asked, a) })
		ids := []string{"web", "db", "web", "cache"}
		l, err := s.TakeLock(t.Context(), LockOptions{
			Containers: ids, Purpose: "restore", Freezes: []string{"x"},
			Journal: map[string]string{"journal": "text"}, Volumes: []string{"v"},
		}, nil)
		assert.NilError(t, err)
		assert.DeepEqual(t, f.created, []string{LockName("cache"), LockName("db"), LockName("web")})
		assert.Equal(t, l.ID(), f.containers[LockName("web")].ID)
		for _, id := range []string{"cache", "db", "web"} {
			journal := f.containers[LockName(id)].Config.Labels
			frozen, err := FrozenBy(journal)
			assert.NilError(t, err)
			hasJournal := id == "web" // the last one: whoever sees it waits for none
			assert.Equal(t, len(frozen) == 1, hasJournal)
			assert.Equal(t, journal["journal"] == "text", hasJournal)
			assert.Equal(t, journal[LabelPurpose], "restore")
		}
		assert.Equal(t, JournalLock(ids), LockName("web"))
		assert.NilError(t, l.RecordJournal(t.Context(), "text"))
		assert.NilError(t, l.Held(t.Context()))
		assert.NilError(t, l.Release(t.Context()))
		assert.Equal(t, len(locked(f, "cache", "db", "web")), 0)
		assert.Assert(t, f.containers[SettledName(l.ID())] != nil) // until it is closed
		assert.NilError(t, l.ForgetJournal(t.Context()))
		assert.DeepEqual(t, asked, []protocol.Arguments{
			protocol.JournalRequest{Act: protocol.RecordJournal, Worker: l.ID(), Text: "text"},
			protocol.JournalRequest{Act: protocol.ForgetJournal, Worker: l.ID()},
		})
		assert.NilError(t, l.Close())
		assert.Equal(t, len(f.containers), 0)
	})
}

// If one of the containers is locked by somebody else, none is locked.
func TestALockIsTakenAsAWhole(t *testing.T) {
	for _, taken := range []string{"a", "b", "c"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeEngine(worker(LockName(taken), "running", time.Now(), map[string]string{LabelPurpose: "create 1", labelFrozen: "null"}))
			_, err := lockService(f, nobodyAsks).TakeLock(t.Context(), LockOptions{Containers: []string{"c", "b", "a"}}, nil)
			lockedBy, ok := errors.AsType[*LockedError](err)
			assert.Assert(t, ok, "%v", err)
			assert.Equal(t, lockedBy.Holder, LockName(taken))
			assert.DeepEqual(t, locked(f, "a", "b", "c"), []string{taken})
		})
	}
	_, err := lockService(newFakeEngine(), nobodyAsks).TakeLock(t.Context(), LockOptions{}, nil)
	assert.Assert(t, cerrdefs.IsInvalidArgument(err), "%v", err)
}

// Two operations on the same containers, whatever the order in which they name them, do not wait for each other.
func TestTwoLocksDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine()
		f.slow = time.Second
		s := lockService(f, nobodyAsks)
		done := make(chan error)
		for _, ids := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
			go func() {
				l, err := s.TakeLock(t.Context(), LockOptions{Containers: ids}, nil)
				if err == nil {
					err = l.Close()
				}
				done <- err
			}()
		}
		assert.NilError(t, errors.Join(<-done, <-done))
		assert.Equal(t, len(f.containers), 0)
	})
}

// A lock is lost as soon as one of its workers has ended.
func TestALockIsLostInPart(t *testing.T) {
	for _, dead := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeEngine()
			l, err := lockService(f, nobodyAsks).TakeLock(t.Context(), LockOptions{Containers: []string{"a", "b"}}, nil)
			assert.NilError(t, err)
			assert.NilError(t, l.Held(t.Context()))
			f.containers[LockName(dead)].State.Running = false
			assert.ErrorIs(t, l.Held(t.Context()), ErrLost)
			assert.NilError(t, l.Close())
		})
	}
}

// Who abandons a lock leaves the journal, and nothing else.
func TestAnAbandonedLockLeavesItsJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine()
		l, err := lockService(f, nobodyAsks).TakeLock(t.Context(), LockOptions{Containers: []string{"a", "b"}, Journal: map[string]string{"journal": "text"}}, nil)
		assert.NilError(t, err)
		assert.NilError(t, l.Abandon())
		assert.DeepEqual(t, locked(f, "a", "b"), []string{"b"})
	})
}

// A worker is a container of its own: closing it leaves the lock, and the other way round.
func TestAWorkerHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine()
		var asked []string
		s := lockService(f, func(id string, a protocol.Arguments) { asked = append(asked, fmt.Sprintf("%s: %s", id, a.Op())) })
		l, err := s.TakeLock(t.Context(), LockOptions{Containers: []string{"a"}}, nil)
		assert.NilError(t, err)
		w, err := s.OpenWorker(t.Context(), WorkerOptions{Name: namePrefix + "one", Purpose: "restore", Task: Replace{}, Volumes: []string{"v", "w"}}, nil)
		assert.NilError(t, err)
		_, err = w.Apply(t.Context(), []Target{{Volume: "v"}, {Volume: "w"}})
		assert.NilError(t, err)
		one := f.containers[namePrefix+"one"].ID
		restore := one + ": restore"
		assert.DeepEqual(t, asked, slices.Repeat([]string{restore}, 4)) // a dry run each, then each
		assert.NilError(t, w.Close())
		assert.NilError(t, l.Held(t.Context()))
		assert.NilError(t, l.Close())
		assert.Equal(t, len(f.containers), 0)
	})
}
