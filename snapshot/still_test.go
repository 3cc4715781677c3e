package snapshot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// withSharer is an engine with two containers that write to one volume.
func withSharer(t *testing.T) *fakeDocker {
	t.Helper()
	docker := newFakeDocker()
	docker.withVolumes()
	for _, name := range []string{"web", "peer"} {
		docker.create(t, name, &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).state = "running"
	}
	docker.findVolume("data").content = "one"
	return docker
}

// by is what somebody else does to a container, past the engine's faults and hooks.
func (f *fakeDocker) by(name string, paused ...bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range paused {
		f.setPaused(f.findContainer(name), p)
	}
}

func (f *fakeDocker) count(call string) int {
	n := 0
	for _, c := range f.calls {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

// createWeb takes a snapshot of web, and checks that nothing else is left of that.
func createWeb(t *testing.T, docker *fakeDocker, p plan.Progress) (capture.Created, error) {
	t.Helper()
	docker.forgetCalls()
	created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, p)
	assert.Assert(t, !strings.Contains(docker.world(), "container cua-snapshot"), docker.world())
	untagged := 0
	for _, img := range docker.images {
		if len(img.tags) == 0 {
			untagged++
		}
	}
	assert.Equal(t, untagged, 0, docker.world())
	return created, err
}

// Whoever lets a container run that stands still for a snapshot, and even if it is
// paused again at once: what was read then is read again.
func TestCreateReadsAgainWhatSomebodyElseHasThawed(t *testing.T) {
	for name, change := range map[string]struct {
		call string
		skip int
		do   func(*fakeDocker)
	}{
		"thawed":                  {"pass", 1, func(f *fakeDocker) { f.by("peer", false) }},
		"thawed, paused again":    {"pass", 1, func(f *fakeDocker) { f.by("peer", false, true) }},
		"the container itself":    {"pass", 1, func(f *fakeDocker) { f.by("web", false, true) }},
		"during the commit":       {"ContainerCommit", 0, func(f *fakeDocker) { f.by("peer", false, true) }},
		"right before it is over": {"ContainerUnpause", 0, func(f *fakeDocker) { f.by("web", false); f.by("peer", false) }},
		"started again by somebody": {"pass", 1, func(f *fakeDocker) {
			f.kill("peer")
			f.mu.Lock()
			defer f.mu.Unlock()
			f.started(f.findContainer("peer"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withSharer(t)
			docker.before(change.call, change.skip, func() {
				change.do(docker)
				docker.findVolume("data").content = "two"
			})
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Assert(t, !created.Incomplete)
			assert.DeepEqual(t, docker.service.archives[string(created.ID)], []string{"two"})
			assert.Equal(t, docker.count("ContainerCommit"), 2)
			assert.Equal(t, docker.findContainer("web").state+docker.findContainer("peer").state, "runningrunning")
			assert.Equal(t, created.Frozen, 2*time.Second) // of a clock that moves a second at each look
		})
	}
}

func TestCreateSaysIfSomebodyThawsAgainAndAgain(t *testing.T) {
	docker := withSharer(t)
	var again func()
	again = func() {
		docker.by("peer", false, true)
		docker.before("ContainerCommit", 0, again)
	}
	docker.before("ContainerCommit", 0, again)
	var got events
	created, err := createWeb(t, docker, got.progress)
	assert.NilError(t, err)
	assert.Assert(t, created.Incomplete)
	assert.Assert(t, strings.Contains(strings.Join(got.warnings(), "\n"), "what is captured may be torn"))
	assert.Equal(t, docker.findContainer("peer").state, "running")
}

// A container that somebody else has paused this moment, as a commit does, is waited
// for; one that stays paused is its user's.
func TestCreateWaitsForWhoHasPausedAContainer(t *testing.T) {
	for _, name := range []string{"web", "peer"} {
		t.Run(name+", for a moment", func(t *testing.T) {
			docker := withSharer(t)
			id := docker.findContainer(name).id
			docker.before("ContainerPause "+id, 0, func() {
				docker.by(name, true)
				docker.before("ContainerInspect "+id, 2, func() { docker.by(name, false) })
			})
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Equal(t, created.Container.State, labels.StateRunning)
			assert.Equal(t, docker.findContainer("web").state+docker.findContainer("peer").state, "runningrunning")
			assert.Equal(t, docker.count("ContainerUnpause "+id), 1)
		})
		t.Run(name+", for good", func(t *testing.T) {
			docker := withSharer(t)
			id := docker.findContainer(name).id
			docker.before("ContainerPause "+id, 0, func() { docker.by(name, true) })
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Equal(t, created.Container.State == labels.StatePaused, name == "web")
			assert.Equal(t, docker.findContainer(name).state, "paused")
			assert.Equal(t, docker.count("ContainerUnpause "+id), 0)
		})
	}
}

// A container without volumes is frozen by the engine's commit, which lets it be if
// somebody else has paused it, who may thaw it in the middle.
func TestCommitIsMadeAgainIfTheContainerDidNotStandStill(t *testing.T) {
	docker := newFakeDocker()
	docker.withVolumes()
	web := docker.run(t, "web")
	docker.before("ContainerCommit", 0, func() {
		docker.by("web", true)
		docker.inCommit = func() {
			docker.setPaused(web, false)
			web.files = "changed meanwhile"
		}
	})
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.findImage(created.ImageID).files, "changed meanwhile")
	assert.Equal(t, created.Container.State, labels.StateRunning)
	assert.Equal(t, web.state, "running")
	assert.DeepEqual(t, web.commits, []bool{true, false})
}

func TestCreateObservesAgainWhatWasPausedForAMoment(t *testing.T) {
	docker := newFakeDocker()
	docker.withVolumes()
	web := docker.run(t, "web")
	docker.by("web", true)
	docker.before("ContainerCommit", 0, func() { docker.by("web", false) })
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Equal(t, created.Container.State, labels.StateRunning)
	assert.Equal(t, web.state, "running")
}

// peerSnapshot is a snapshot of peer that is being taken: it has frozen both.
func peerSnapshot(t *testing.T, docker *fakeDocker) archives.Backup {
	t.Helper()
	backup, err := docker.service.Begin(t.Context(), volumebackup.BackupOptions{
		Container: docker.findContainer("peer").id, Volumes: []volumebackup.Volume{{Name: "data"}},
		Freezes: []string{docker.findContainer("web").id, docker.findContainer("peer").id},
	}, nil)
	assert.NilError(t, err)
	return backup
}

// Of two snapshots that freeze the same containers, the one that began later waits.
func TestCreateWaitsForWhoFreezesTheSameContainers(t *testing.T) {
	for name, paused := range map[string]bool{"not yet": false, "frozen": true} {
		t.Run(name, func(t *testing.T) {
			docker := withSharer(t)
			first := peerSnapshot(t, docker)
			docker.by("web", paused)
			docker.by("peer", paused)
			waited := false
			docker.service.waiting = func(holder string) {
				waited = true
				assert.Equal(t, holder, volumebackup.LockName(docker.findContainer("peer").id))
				assert.Equal(t, docker.count("ContainerPause"), 0)
				docker.by("web", false)
				docker.by("peer", false)
				assert.NilError(t, first.Close())
			}
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Assert(t, waited)
			assert.Equal(t, created.Container.State, labels.StateRunning)
			assert.Equal(t, docker.findContainer("web").state+docker.findContainer("peer").state, "runningrunning")
		})
	}
	t.Run("which is not for ever", func(t *testing.T) {
		docker := withSharer(t)
		_ = peerSnapshot(t, docker)
		_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
		assert.ErrorContains(t, err, "another snapshot operation is under way")
	})
	t.Run("but not for one that began later", func(t *testing.T) {
		docker := withSharer(t)
		docker.before("pass", 0, func() { _ = peerSnapshot(t, docker) })
		docker.service.waiting = func(string) { t.Error("they wait for each other") }
		_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
		assert.NilError(t, err)
	})
}

// What a killed snapshot of another container has left frozen is thawed.
func TestCreateThawsWhatADeadSnapshotHasFrozen(t *testing.T) {
	for _, name := range []string{"web", "peer"} {
		t.Run(name, func(t *testing.T) {
			docker := withSharer(t)
			assert.NilError(t, peerSnapshot(t, docker).(*fakeBackup).Abandon())
			docker.by(name, true)
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Equal(t, created.Container.State, labels.StateRunning)
			assert.Equal(t, docker.findContainer("web").state+docker.findContainer("peer").state, "runningrunning")
		})
	}
}

// Both errors are told, and the journal stays, so that the next command thaws.
func TestCreateLeavesItsJournalIfItCannotThaw(t *testing.T) {
	docker := withSharer(t)
	web := docker.findContainer("web").id
	docker.before("pass", 1, func() {
		docker.refused = []string{"pass", "ContainerUnpause " + web}
	})
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.ErrorContains(t, err, "refused pass")
	assert.ErrorContains(t, err, "is still paused, thaw it with docker unpause")
	assert.Equal(t, docker.findContainer("web").state+docker.findContainer("peer").state, "pausedrunning")
	docker.refused = nil
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Equal(t, created.Container.State, labels.StateRunning)
	assert.Equal(t, docker.findContainer("web").state, "running")
}

// A pause that was carried out, and answered with an error, is one all the same.
func TestAPauseIsWhatTheStateSays(t *testing.T) {
	docker := withSharer(t)
	docker.spoiled = "ContainerPause"
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Assert(t, created.Frozen > 0)
	assert.Equal(t, docker.findContainer("web").state+docker.findContainer("peer").state, "runningrunning")
	assert.Assert(t, slices.Contains(docker.calls, "ContainerUnpause "+docker.findContainer("peer").id))
}
