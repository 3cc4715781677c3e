package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// take tries to take the lock, for a minute.
func take(ctx context.Context, f *fakeEngine) error {
	_, err := launcherOn(f).create(ctx, &container.Config{}, nil, job{name: testLock, wait: time.Minute})
	return err
}

func TestLockIsTakenOverFromTheDead(t *testing.T) {
	frozenWeb := map[string]string{LabelPurpose: "create", labelFrozen: `["web","gone"]`}
	replacing := map[string]string{LabelPurpose: "restore", labelFrozen: "null", labelKept: "true"}
	for _, tc := range []struct {
		name    string
		holder  *container.InspectResponse
		busy    int
		calls   []string
		remains []string // besides the lock and web
	}{
		{name: "free"},
		{
			name: "of a client that died while containers were frozen", holder: worker(testLock, "exited", time.Time{}, frozenWeb),
			calls: []string{"unpause web", "remove " + testLock},
		},
		{
			name: "never started, long ago", holder: worker(testLock, "created", time.Time{}, frozenWeb),
			calls: []string{"unpause web", "remove " + testLock},
		},
		{
			name: "being removed by somebody else", holder: worker(testLock, "exited", time.Time{}, frozenWeb), busy: 3,
			calls: []string{"unpause web"},
		},
		{
			name: "with a journal that is somebody else's to repair", holder: worker(testLock, "exited", time.Time{}, replacing),
			remains: []string{testLock + "-" + fmt.Sprintf("%x", testLock)[:6]},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeEngine(paused("web"))
				f.busy = tc.busy
				if tc.holder != nil {
					holder := *tc.holder
					f.containers[testLock] = &holder
				}
				assert.NilError(t, take(t.Context(), f))
				assert.DeepEqual(t, f.calls, tc.calls)
				for _, name := range tc.remains {
					assert.Assert(t, f.containers[name] != nil, "%s is gone", name)
				}
				assert.Equal(t, len(f.containers), 2+len(tc.remains))
			})
		})
	}
}

func TestLockIsNotTakenFromTheLiving(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status string
	}{{"at work", "running"}, {"about to start", "created"}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The far future: while it is waited for, it never gets old.
				holder := worker(testLock, tc.status, time.Now().Add(time.Hour), map[string]string{LabelPurpose: "create 1", labelFrozen: "null"})
				f := newFakeEngine(holder)
				began := time.Now()
				err := take(t.Context(), f)
				var locked *LockedError
				assert.Assert(t, errors.As(err, &locked), "%v", err)
				assert.Equal(t, *locked, LockedError{Holder: testLock, Purpose: "create 1"})
				assert.Assert(t, cerrdefs.IsConflict(err))
				assert.Equal(t, time.Since(began), time.Minute)
				assert.Equal(t, len(f.calls), 0)
			})
		})
	}
}

// A worker that was made a moment ago is not dead because a client's clock is ahead
// of the engine's; and one of an hour ago is, though the clock is behind.
func TestAgeIsMeasuredOnTheEnginesClock(t *testing.T) {
	for _, tc := range []struct {
		name        string
		behind, age time.Duration
		isDead      bool
	}{
		{"new, our clock is ahead", time.Minute, time.Second, false},
		{"old, our clock is behind", -2 * time.Hour, time.Hour, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				holder := worker(testLock, "created", time.Now().Add(-tc.behind-tc.age), map[string]string{labelFrozen: "null"})
				f := newFakeEngine(holder)
				f.behind = tc.behind
				_, err := launcherOn(f).create(t.Context(), &container.Config{}, nil, job{name: testLock, wait: time.Second})
				assert.Equal(t, err == nil, tc.isDead, "%v", err)
				f.containers[testLock] = holder
				err = (&Service{docker: f, lockTimeout: time.Second}).Await(t.Context(), holder.ID)
				assert.Equal(t, err == nil, tc.isDead, "%v", err)
			})
		})
	}
}

func TestLockThatIsHeldIsReleasedOnce(t *testing.T) {
	for name, lost := range map[string]int{"answered": 0, "the answer is lost": 1} {
		t.Run(name, func(t *testing.T) {
			holder := worker(testLock, "running", time.Now(), nil)
			f := newFakeEngine(holder)
			f.lost = lost
			w := workerConn{docker: f, id: holder.ID, name: testLock, detached: t.Context()}
			assert.NilError(t, w.Held(t.Context()))
			assert.NilError(t, w.Release(t.Context()))
			assert.Assert(t, IsSettled(holder.ID, holder.Name[1:]))
			assert.ErrorIs(t, w.Held(t.Context()), ErrLost)
		})
	}
}

// Whoever clears up after a worker takes that name first.
func TestAWorkerAfterWhichSomebodyClearsUpIsNotSettled(t *testing.T) {
	dead := worker(testLock, "exited", time.Now(), nil)
	heir := worker(SettledName(dead.ID), "running", time.Now(), nil)
	heir.ID = "f00" + heir.ID
	for name, f := range map[string]*fakeEngine{"by now": newFakeEngine(dead, heir), "before": newFakeEngine(heir)} {
		t.Run(name, func(t *testing.T) {
			w := workerConn{docker: f, id: dead.ID, detached: t.Context()}
			assert.ErrorIs(t, w.Release(t.Context()), ErrLost)
			assert.Assert(t, !IsSettled(heir.ID, heir.Name[1:]))
		})
	}
}

// A name that is wanted once is not waited for, and not taken from a dead worker.
func TestANameIsWantedOnce(t *testing.T) {
	for _, status := range []string{"running", "exited"} {
		f := newFakeEngine(worker(testLock, status, time.Now(), map[string]string{labelFrozen: "null"}))
		_, err := launcherOn(f).create(t.Context(), &container.Config{}, nil, job{name: testLock, once: true, wait: time.Minute})
		assert.Assert(t, cerrdefs.IsConflict(err), "%v", err)
		assert.Assert(t, f.containers[testLock] != nil)
	}
	f := newFakeEngine()
	_, err := launcherOn(f).create(t.Context(), &container.Config{}, nil, job{name: testLock, once: true})
	assert.NilError(t, err)
}

func TestLockIsLostWithItsWorker(t *testing.T) {
	holder := worker(testLock, "exited", time.Now(), nil)
	f := newFakeEngine(holder)
	w := workerConn{docker: f, id: holder.ID, name: testLock, detached: t.Context()}
	assert.ErrorIs(t, w.Held(t.Context()), ErrLost)
	delete(f.containers, testLock)
	assert.ErrorIs(t, w.Held(t.Context()), ErrLost)
	assert.ErrorContains(t, w.Release(t.Context()), "no such container")
}

func TestLockIsWaitedForUntilCtrlC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine(worker(testLock, "running", time.Now(), map[string]string{labelFrozen: "null"}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, take(ctx, f), context.DeadlineExceeded)
	})
}

func TestLockWithABrokenJournalIsLeftAlone(t *testing.T) {
	f := newFakeEngine(worker(testLock, "exited", time.Time{}, map[string]string{labelFrozen: "nonsense"}))
	assert.ErrorContains(t, take(t.Context(), f), `read journal "nonsense"`)
	assert.Assert(t, f.containers[testLock] != nil)
}

func TestJournalOfAnotherVersionIsLeftAlone(t *testing.T) {
	f := newFakeEngine(paused("web"), worker(testLock, "exited", time.Time{}, map[string]string{
		LabelPurpose: "create", labelFrozen: `["web"]`, labelJournalVersion: "3", labelPlugin: "v9",
	}))
	err := take(t.Context(), f)
	other, ok := errors.AsType[*JournalVersionError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, *other, JournalVersionError{Version: "3", Plugin: "v9"})
	assert.Equal(t, len(f.calls), 0)
	assert.Assert(t, f.containers[testLock] != nil)
}

// What dead workers left is put right also for who does not want to wait.
func TestARepairIsNotAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine(paused("web"), worker(testLock, "exited", time.Time{}, map[string]string{labelFrozen: `["web"]`}))
		f.busy = 3 // somebody else is still removing it
		_, err := launcherOn(f).create(t.Context(), &container.Config{}, nil, job{name: testLock})
		assert.NilError(t, err)
	})
}

func TestWhatSomebodyElseThawsIsThawed(t *testing.T) {
	f := newFakeEngine(paused("web"), worker(testLock, "exited", time.Time{}, map[string]string{labelFrozen: `["web"]`}))
	f.thawed = 1
	assert.NilError(t, take(t.Context(), f))
}

func TestWhoWaitsSaysForWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine(worker(testLock, "paused", time.Now(), map[string]string{LabelPurpose: "create 1", labelFrozen: "null"}))
		var told []string
		_, err := launcherOn(f).create(t.Context(), &container.Config{}, nil, job{name: testLock, wait: time.Minute, tell: func(e protocol.Event) {
			told = append(told, e.Progress.Phase)
		}})
		want := "another snapshot operation is under way (create 1, in container " + testLock + ", which is paused)"
		assert.Error(t, err, want)
		assert.DeepEqual(t, told, []string{"waiting: " + want})
	})
}

// A name alone makes no worker: what its labels say is not done.
func TestLockIsNotTakenFromAStranger(t *testing.T) {
	stranger := worker(testLock, "exited", time.Time{}, map[string]string{labelFrozen: `["web"]`})
	stranger.Image = "sha256:other"
	f := newFakeEngine(paused("web"), stranger)
	assert.ErrorContains(t, take(t.Context(), f), "none of ours")
	assert.Equal(t, len(f.calls), 0)
}

// A create call that was not answered leaves nothing; a container that somebody else
// has made under the name stays.
func TestAWorkerWhoseAnswerIsLostIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeEngine()
		f.unanswered = 1
		config := &container.Config{Labels: map[string]string{labelOperation: "this one"}}
		_, err := launcherOn(f).create(t.Context(), config, nil, job{name: testLock, wait: time.Minute})
		assert.ErrorContains(t, err, "the connection broke")
		assert.DeepEqual(t, f.calls, []string{"remove " + testLock})
	})
	f := newFakeEngine(worker(testLock, "running", time.Now(), map[string]string{labelOperation: "another one"}))
	assert.NilError(t, launcherOn(f).removeUnanswered(t.Context(), "this one", testLock))
	assert.Equal(t, len(f.calls), 0)
}

// Whoever removes a worker, and be it the engine because the worker has ended: it is gone
// when the command that used it ends.
func TestARemovedWorkerIsGone(t *testing.T) {
	for _, busy := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeEngine(worker(testLock, "exited", time.Time{}, nil))
			f.busy = busy
			assert.NilError(t, removeWorker(t.Context(), f, testLock))
			assert.Equal(t, len(f.containers), 0)
		})
	}
}
