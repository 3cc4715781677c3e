package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"gotest.tools/v3/assert"
)

// fakeEngine holds containers by name, as far as locking needs them.
type fakeEngine struct {
	Docker // panics on what a test does not expect

	containers map[string]*container.InspectResponse // by name
	busy       int                                   // removals that end in a conflict: somebody else removes it
	behind     time.Duration                         // what its clock shows less than ours
	lost       int                                   // renames whose answer is lost
	calls      []string
}

func newFakeEngine(containers ...*container.InspectResponse) *fakeEngine {
	f := &fakeEngine{containers: map[string]*container.InspectResponse{}}
	for _, c := range containers {
		f.containers[strings.TrimPrefix(c.Name, "/")] = c
	}
	return f
}

func (f *fakeEngine) find(word string) (string, *container.InspectResponse, error) {
	for name, c := range f.containers {
		if name == word || c.ID == word {
			return name, c, nil
		}
	}
	return "", nil, fmt.Errorf("no such container: %s: %w", word, cerrdefs.ErrNotFound)
}

func (f *fakeEngine) Info(context.Context) (system.Info, error) {
	return system.Info{SystemTime: time.Now().Add(-f.behind).Format(time.RFC3339Nano)}, nil
}

func (f *fakeEngine) ContainerCreate(_ context.Context, config *container.Config, _ *container.HostConfig, _ *network.NetworkingConfig, _ *ocispec.Platform, name string) (container.CreateResponse, error) {
	if _, taken := f.containers[name]; taken {
		return container.CreateResponse{}, fmt.Errorf("the name %s is in use: %w", name, cerrdefs.ErrConflict)
	}
	f.containers[name] = worker(name, "created", time.Now(), config.Labels)
	return container.CreateResponse{ID: f.containers[name].ID}, nil
}

func (f *fakeEngine) ContainerInspect(_ context.Context, word string) (container.InspectResponse, error) {
	_, c, err := f.find(word)
	if err != nil {
		return container.InspectResponse{}, err
	}
	return *c, nil
}

func (f *fakeEngine) ContainerRemove(_ context.Context, word string, _ container.RemoveOptions) error {
	name, _, err := f.find(word)
	if err != nil {
		return err
	}
	if f.busy--; f.busy >= 0 {
		return fmt.Errorf("removal of container %s is already in progress: %w", word, cerrdefs.ErrConflict)
	}
	delete(f.containers, name)
	f.calls = append(f.calls, "remove "+name)
	return nil
}

func (f *fakeEngine) ContainerRename(_ context.Context, word, to string) error {
	name, c, err := f.find(word)
	if err != nil {
		return err
	}
	delete(f.containers, name)
	c.Name = "/" + to
	f.containers[to] = c
	if f.lost--; f.lost >= 0 {
		return errors.New("the connection broke")
	}
	return nil
}

func (f *fakeEngine) ContainerUnpause(_ context.Context, word string) error {
	name, c, err := f.find(word)
	if err != nil {
		return err
	}
	c.State.Paused = false
	f.calls = append(f.calls, "unpause "+name)
	return nil
}

// worker is a container in a state; its ID follows from its name.
func worker(name, status string, created time.Time, labels map[string]string) *container.InspectResponse {
	journal := JournalLabels("v1")
	maps.Copy(journal, labels)
	return &container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: fmt.Sprintf("%x", name), Name: "/" + name, Created: created.Format(time.RFC3339Nano),
			State: &container.State{Status: status, Running: status == "running"},
		},
		Config: &container.Config{Labels: journal},
	}
}

func paused(name string) *container.InspectResponse {
	c := worker(name, "paused", time.Time{}, nil)
	c.State.Running, c.State.Paused = true, true
	return c
}

const testLock = "cua-snapshot-web"

// take tries to take the lock, for a minute.
func take(ctx context.Context, f *fakeEngine) error {
	_, err := (&containerLauncher{docker: f}).create(ctx, &container.Config{}, nil, job{name: testLock, wait: time.Minute})
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
			calls: []string{"unpause web", "remove " + testLock},
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
				_, err := (&containerLauncher{docker: f}).create(t.Context(), &container.Config{}, nil, job{name: testLock, wait: time.Second})
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
			assert.Assert(t, IsSettled(holder.Name))
			assert.ErrorIs(t, w.Held(t.Context()), ErrLost)
		})
	}
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

func TestWorkersAreKnownByWhatNoImageCanSay(t *testing.T) {
	ours := map[string]string{LabelPurpose: "create"}
	for _, tc := range []struct {
		name     string
		c        container.Summary
		isWorker bool
	}{
		{"a worker", container.Summary{Image: "cua-snapshot/worker:0123456789ab", Names: []string{"/cua-snapshot-0123456789ab"}, Labels: ours}, true},
		{"a worker whose tag has moved", container.Summary{Image: "sha256:0123", Names: []string{"/cua-snapshot-worker-01234567"}, Labels: ours}, true},
		{"of an image with a worker's labels", container.Summary{Image: "evil", Names: []string{"/cua-snapshot-0123456789ab"}, Labels: ours}, false},
		{"of such an image without a tag", container.Summary{Image: "sha256:0123", Names: []string{"/web"}, Labels: ours}, false},
		{"of a snapshot of a container named worker", container.Summary{Image: "cua-snapshot/worker:one", Names: []string{"/web"}, Labels: ours}, false},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, IsWorker(tc.c), tc.isWorker) })
	}
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
		LabelPurpose: "create", labelFrozen: `["web"]`, labelJournalVersion: "2", labelPlugin: "v9",
	}))
	err := take(t.Context(), f)
	other, ok := errors.AsType[*JournalVersionError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, *other, JournalVersionError{Version: "2", Plugin: "v9"})
	assert.Equal(t, len(f.calls), 0)
	assert.Assert(t, f.containers[testLock] != nil)
}

func FuzzFrozenBy(f *testing.F) {
	f.Add("null")
	f.Add(`["a","b"]`)
	f.Add("nonsense")
	f.Fuzz(func(t *testing.T, text string) {
		journal := JournalLabels("v1")
		journal[labelFrozen] = text
		frozen, err := FrozenBy(journal)
		assert.Assert(t, err == nil || len(frozen) == 0)
		assert.Assert(t, len(frozen) <= maxFrozen)
	})
}

func TestJournalNamesWhatIsFrozen(t *testing.T) {
	config, host, err := (&containerLauncher{store: "s", plugin: "v1"}).configure("image", job{
		purpose: "create", frozen: []string{"a", "b"}, mounts: []Mount{{Number: 3, Volume: "v", ReadOnly: true}},
	})
	assert.NilError(t, err)
	frozen, err := FrozenBy(config.Labels)
	assert.NilError(t, err)
	assert.DeepEqual(t, frozen, []string{"a", "b"})
	assert.Assert(t, host.ReadonlyRootfs)
	assert.Equal(t, string(host.NetworkMode), "none")
	at := slices.IndexFunc(host.Mounts, func(m mount.Mount) bool { return m.Target == "/mnt/3" })
	assert.Assert(t, at >= 0 && host.Mounts[at].ReadOnly && host.Mounts[at].Source == "v")
	for _, m := range host.Mounts {
		assert.Equal(t, string(m.Type), "volume", "nothing of a host is mounted")
	}
}
