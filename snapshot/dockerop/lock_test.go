package dockerop

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
)

// lockEngine has volumes. The calls of which failing has the names fail, each once, after they are done.
type lockEngine struct {
	Docker
	mu      sync.Mutex
	volumes map[string]volume.Volume
	failing map[string]bool
}

var errLost = errors.New("answer lost")

// answer loses the answer of a call, once.
func (e *lockEngine) answer(call string) error {
	if e.failing[call] {
		delete(e.failing, call)
		return errLost
	}
	return nil
}

func (e *lockEngine) VolumeCreate(_ context.Context, o volume.CreateOptions) (volume.Volume, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, exists := e.volumes[o.Name]; !exists {
		e.volumes[o.Name] = volume.Volume{Name: o.Name, Labels: o.Labels}
	}
	return e.volumes[o.Name], e.answer("create")
}

func (e *lockEngine) VolumeInspect(_ context.Context, name string) (volume.Volume, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, exists := e.volumes[name]
	if !exists {
		return volume.Volume{}, cerrdefs.ErrNotFound
	}
	return found, e.answer("inspect")
}

func (e *lockEngine) VolumeRemove(_ context.Context, name string, _ bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.volumes, name)
	return e.answer("remove")
}

func newLockEngine(failing ...string) (*lockEngine, *Engine) {
	fake := &lockEngine{volumes: map[string]volume.Volume{}, failing: map[string]bool{}}
	for _, call := range failing {
		fake.failing[call] = true
	}
	return fake, New(fake, nil)
}

func TestALockIsOneClientsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, e := newLockEngine()
		holders := 0
		var clients sync.WaitGroup
		for range 5 {
			clients.Go(func() {
				lock, err := e.Lock(t.Context(), "lock", nil, rand.Reader, time.Now)
				assert.Check(t, err)
				holders++
				assert.Check(t, holders == 1)
				time.Sleep(time.Second)
				holders--
				wasHeld, err := lock.Release(t.Context())
				assert.Check(t, err)
				assert.Check(t, wasHeld)
			})
		}
		clients.Wait()
		assert.Equal(t, len(fake.volumes), 0)
	})
}

func TestTheLockOfADeadClientIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, e := newLockEngine()
		dead, err := e.Lock(t.Context(), "lock", nil, rand.Reader, time.Now)
		assert.NilError(t, err)
		began := time.Now()
		lock, err := e.Lock(t.Context(), "lock", nil, rand.Reader, time.Now)
		assert.NilError(t, err)
		assert.Assert(t, time.Since(began) >= lockAge && time.Since(began) < lockAge+time.Second)
		wasHeld, err := dead.Release(t.Context()) // it only stood still
		assert.NilError(t, err)
		assert.Assert(t, !wasHeld && len(fake.volumes) == 1)
		wasHeld, err = lock.Release(t.Context())
		assert.NilError(t, err)
		assert.Assert(t, wasHeld && len(fake.volumes) == 0)
	})
}

func TestNoLockIsLeftBehindByALostAnswer(t *testing.T) {
	for _, call := range []string{"create", "inspect", "remove"} {
		t.Run(call, func(t *testing.T) {
			fake, e := newLockEngine(call)
			lock, err := e.Lock(t.Context(), "lock", nil, rand.Reader, time.Now)
			if call == "create" {
				assert.ErrorIs(t, err, errLost)
			} else {
				assert.NilError(t, err)
				wasHeld, err := lock.Release(t.Context())
				assert.NilError(t, err)
				assert.Assert(t, wasHeld)
			}
			assert.Equal(t, len(fake.volumes), 0)
		})
	}
}

func TestSomebodysVolumeIsNoLock(t *testing.T) {
	fake, e := newLockEngine()
	fake.volumes["lock"] = volume.Volume{Name: "lock", Labels: map[string]string{"owner": "somebody"}}
	_, err := e.Lock(t.Context(), "lock", nil, rand.Reader, time.Now)
	assert.ErrorContains(t, err, "there is a volume of that name which is no lock")
	assert.Equal(t, len(fake.volumes), 1)
}

// The engine makes the directory of a volume before it writes down its labels.
func TestALockThatTheEngineWasKilledOverIsTaken(t *testing.T) {
	fake, e := newLockEngine()
	fake.volumes["lock"] = volume.Volume{Name: "lock"}
	lock, err := e.Lock(t.Context(), "lock", nil, rand.Reader, time.Now)
	assert.NilError(t, err)
	wasHeld, err := lock.Release(t.Context())
	assert.NilError(t, err)
	assert.Assert(t, wasHeld && len(fake.volumes) == 0)
}

func TestWhatIsALock(t *testing.T) {
	held := LockLabels("somebody")
	for name, isLock := range map[string]bool{
		LockName(NameLocks, "db:new"):         true,
		LockName(RunLocks, "42"):              true,
		LockName(RunLocks, "42") + "0":        false,
		"cua-snapshot-run-of-a-user":          false,
		"cua-snapshot-key":                    false,
		"my-" + LockName(NameLocks, "db:new"): false,
	} {
		assert.Equal(t, IsLock(volume.Volume{Name: name}), isLock, name)
		assert.Assert(t, !IsLock(volume.Volume{Name: name, Labels: map[string]string{"owner": "somebody"}}), name)
		assert.Assert(t, IsLock(volume.Volume{Name: name, Labels: held}), name)
	}
}

func TestWhoStopsWaitingForALockLeavesItToItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, e := newLockEngine()
		_, err := e.Lock(t.Context(), "lock", nil, rand.Reader, time.Now)
		assert.NilError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Lock(ctx, "lock", nil, rand.Reader, time.Now)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, len(fake.volumes), 1)
	})
}

func TestWhoWantsALockForTheSameGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, e := newLockEngine()
		about := map[string]string{"removes": "one"}
		_, err := e.Lock(t.Context(), "lock", about, rand.Reader, time.Now)
		assert.NilError(t, err)
		began := time.Now()
		_, err = e.Lock(t.Context(), "lock", about, rand.Reader, time.Now)
		assert.NilError(t, err)
		assert.Assert(t, time.Since(began) < time.Second)
		lock, err := e.Lock(t.Context(), "lock", map[string]string{"removes": "two"}, rand.Reader, time.Now)
		assert.NilError(t, err)
		assert.Assert(t, time.Since(began) >= lockAge)
		assert.Equal(t, fake.volumes["lock"].Labels["removes"], "two")
		_, err = lock.Release(t.Context())
		assert.NilError(t, err)
	})
}
