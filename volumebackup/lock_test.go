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

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// fakeEngine holds containers by name, as far as locking needs them.
type fakeEngine struct {
	Docker // panics on what a test does not expect

	containers map[string]*container.InspectResponse // by name
	busy       int                                   // how often a container is there yet that somebody else removes
	behind     time.Duration                         // what its clock shows less than ours
	lost       int                                   // renames whose answer is lost
	unanswered int                                   // create calls whose answer is lost
	thawed     int                                   // containers that somebody else thaws at the same moment
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
	if f.unanswered--; f.unanswered >= 0 {
		return container.CreateResponse{}, errors.New("the connection broke")
	}
	return container.CreateResponse{ID: f.containers[name].ID}, nil
}

func (f *fakeEngine) ContainerInspect(_ context.Context, word string) (container.InspectResponse, error) {
	name, c, err := f.find(word)
	if err != nil {
		return container.InspectResponse{}, err
	}
	if c.State.Status == container.StateRemoving {
		if f.busy--; f.busy == 0 {
			delete(f.containers, name)
		}
	}
	return *c, nil
}

func (f *fakeEngine) ContainerRemove(_ context.Context, word string, _ container.RemoveOptions) error {
	name, c, err := f.find(word)
	if err != nil {
		return err
	}
	if f.busy > 0 {
		c.State.Status = container.StateRemoving
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
	if f.thawed--; f.thawed >= 0 {
		return fmt.Errorf("container %s is not paused", word)
	}
	f.calls = append(f.calls, "unpause "+name)
	return nil
}

// testImage is the ID of an image that launcherOn takes for a worker's.
const testImage = "sha256:worker"

func launcherOn(f *fakeEngine) *containerLauncher {
	return &containerLauncher{docker: f, images: workerImages{docker: f, judged: map[string]bool{testImage: true, "sha256:other": false}}}
}

// worker is a container in a state; its ID follows from its name.
func worker(name, status string, created time.Time, labels map[string]string) *container.InspectResponse {
	journal := JournalLabels("v1")
	journal[LabelPurpose] = "test"
	maps.Copy(journal, labels)
	return &container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: fmt.Sprintf("%x", name), Image: testImage, Name: "/" + name, Created: created.Format(time.RFC3339Nano),
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

// testStore is a store that nobody opens.
var testStore = &storeVolume{StoreRef: StoreRef{Name: "s"}}

// A worker that holds no lock and has no journal goes by itself, whatever becomes of its client.
func TestWhoHoldsNothingGoesByItself(t *testing.T) {
	for _, tc := range []struct {
		j    job
		goes bool
	}{{job{store: testStore, purpose: "list"}, true}, {job{store: testStore, name: "lock"}, false}, {job{store: testStore, journal: map[string]string{"made": "v"}}, false}} {
		_, host, err := (&containerLauncher{}).configure("image", tc.j)
		assert.NilError(t, err)
		assert.Equal(t, host.AutoRemove, tc.goes)
	}
}

func TestJournalNamesWhatIsFrozen(t *testing.T) {
	config, host, err := (&containerLauncher{plugin: "v1"}).configure("image", job{
		store:   testStore,
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

func TestWorkersMayOnlyWhatTheirJobNeeds(t *testing.T) {
	for _, tc := range []struct {
		name     string
		rights   rights
		readOnly bool // the store
		want     string
	}{
		{"look", toLook, true, "DAC_OVERRIDE"},
		{"tidy", toTidy, false, "DAC_OVERRIDE"},
		{"compare", RestoreOptions{Volumes: []string{"v"}, ReadOnly: true}.rights(), true, "DAC_OVERRIDE DAC_READ_SEARCH FOWNER SYS_ADMIN"},
		{"capture", toCapture, false, "DAC_OVERRIDE DAC_READ_SEARCH FOWNER LEASE SYS_ADMIN"},
		{"fill", RestoreOptions{Volumes: []string{"v"}, Fill: &Fill{}}.rights(), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE SETFCAP"},
		{"fill with devices", toFill(true, false), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE MKNOD SETFCAP"},
		{"fill with trusted xattrs", toFill(false, true), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE SETFCAP SYS_ADMIN"},
		{"replace", RestoreOptions{Volumes: []string{"v"}}.rights(), false, "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID LEASE MKNOD SETFCAP SYS_ADMIN"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, host, err := (&containerLauncher{}).configure("image", job{store: testStore, rights: tc.rights})
			assert.NilError(t, err)
			assert.DeepEqual(t, []string(host.CapAdd), strings.Fields(tc.want))
			assert.DeepEqual(t, []string(host.CapDrop), []string{"ALL"})
			assert.Equal(t, host.Mounts[0].ReadOnly, tc.readOnly)
			assert.Equal(t, host.Memory, int64(memoryLimit))
		})
	}
	_, host, err := (&containerLauncher{}).configure("image", job{rights: RestoreOptions{Idle: true, Volumes: []string{"v"}}.rights()})
	assert.NilError(t, err)
	assert.Equal(t, len(host.Mounts), 0) // but the volumes that the job mounts: who only holds them needs no store
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
