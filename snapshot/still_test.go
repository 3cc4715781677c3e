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
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// withSharer is an engine with two containers that write to one volume.
func withSharer(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	for _, name := range []string{"web", "peer"} {
		docker.Create(t, name, &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}}).State = "running"
	}
	docker.FindVolume("data").Content = "one"
	return docker
}

// createWeb takes a snapshot of web, and checks that nothing else is left of that.
func createWeb(t *testing.T, docker *enginetest.Docker, p plan.Progress) (capture.Created, error) {
	t.Helper()
	docker.ForgetCalls()
	created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, p)
	assert.Assert(t, !strings.Contains(docker.World(), "container cua-snapshot"), docker.World())
	untagged := 0
	for _, img := range docker.Images {
		if len(img.Tags) == 0 {
			untagged++
		}
	}
	assert.Equal(t, untagged, 0, docker.World())
	return created, err
}

// Whoever lets a container run that stands still for a snapshot, and even if it is
// paused again at once: what was read then is read again.
func TestCreateReadsAgainWhatSomebodyElseHasThawed(t *testing.T) {
	for name, change := range map[string]struct {
		call string
		skip int
		do   func(*enginetest.Docker)
	}{
		"thawed":                  {"pass", 1, func(f *enginetest.Docker) { f.By("peer", false) }},
		"thawed, paused again":    {"pass", 1, func(f *enginetest.Docker) { f.By("peer", false, true) }},
		"the container itself":    {"pass", 1, func(f *enginetest.Docker) { f.By("web", false, true) }},
		"during the commit":       {"ContainerCommit", 0, func(f *enginetest.Docker) { f.By("peer", false, true) }},
		"right before it is over": {"ContainerUnpause", 0, func(f *enginetest.Docker) { f.By("web", false); f.By("peer", false) }},
		"started again by somebody": {"pass", 1, func(f *enginetest.Docker) {
			f.Kill("peer")
			f.Mu.Lock()
			defer f.Mu.Unlock()
			f.Started(f.FindContainer("peer"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withSharer(t)
			docker.Before(change.call, change.skip, func() {
				change.do(docker)
				docker.FindVolume("data").Content = "two"
			})
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Assert(t, !created.Incomplete)
			assert.DeepEqual(t, docker.Service.Archives[string(created.ID)], []string{"two"})
			assert.Equal(t, docker.Count("ContainerCommit"), 2)
			assert.Equal(t, docker.FindContainer("web").State+docker.FindContainer("peer").State, "runningrunning")
			assert.Equal(t, created.Frozen, 4*time.Second) // of a clock that moves a second at each look, once between the last pass and the commit
		})
	}
}

// A container that begins to write after the writers were found is frozen too, and everything is read again.
func TestCreateReadsAgainWhatANewWriterChanges(t *testing.T) {
	for name, pass := range map[string]int{"while the writers run": 0, "while they are frozen": 1} {
		t.Run(name, func(t *testing.T) {
			docker := withSharer(t)
			late := docker.Create(t, "late", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
			docker.Before("pass", pass, func() {
				docker.Mu.Lock()
				defer docker.Mu.Unlock()
				docker.Started(late)
				docker.FindVolume("data").Content = "two"
			})
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Assert(t, !created.Incomplete)
			assert.DeepEqual(t, docker.Service.Archives[string(created.ID)], []string{"two"})
			assert.Equal(t, docker.Count("ContainerPause "+late.ID), 1)
			assert.Equal(t, late.State, "running")
		})
	}
}

func TestCreateSaysIfSomebodyThawsAgainAndAgain(t *testing.T) {
	docker := withSharer(t)
	var again func()
	again = func() {
		docker.By("peer", false, true)
		docker.Before("ContainerCommit", 0, again)
	}
	docker.Before("ContainerCommit", 0, again)
	var got enginetest.Events
	created, err := createWeb(t, docker, got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, created.Incomplete)
	assert.Assert(t, strings.Contains(strings.Join(got.Warnings(), "\n"), "what is captured may be torn"))
	assert.Equal(t, docker.FindContainer("peer").State, "running")
}

// A container that somebody else has paused this moment, as a commit does, is waited
// for; one that stays paused is its user's.
func TestCreateWaitsForWhoHasPausedAContainer(t *testing.T) {
	for _, name := range []string{"web", "peer"} {
		t.Run(name+", for a moment", func(t *testing.T) {
			docker := withSharer(t)
			id := docker.FindContainer(name).ID
			docker.Before("ContainerPause "+id, 0, func() {
				docker.By(name, true)
				docker.Before("ContainerInspect "+id, 2, func() { docker.By(name, false) })
			})
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Equal(t, created.Container.State, labels.StateRunning)
			assert.Equal(t, docker.FindContainer("web").State+docker.FindContainer("peer").State, "runningrunning")
			assert.Equal(t, docker.Count("ContainerUnpause "+id), 1)
		})
		t.Run(name+", for good", func(t *testing.T) {
			docker := withSharer(t)
			id := docker.FindContainer(name).ID
			docker.Before("ContainerPause "+id, 0, func() { docker.By(name, true) })
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Equal(t, created.Container.State == labels.StatePaused, name == "web")
			assert.Equal(t, docker.FindContainer(name).State, "paused")
			assert.Equal(t, docker.Count("ContainerUnpause "+id), 0)
		})
	}
}

// A container without volumes is frozen by the engine's commit, which lets it be if
// somebody else has paused it, who may thaw it in the middle.
func TestCommitIsMadeAgainIfTheContainerDidNotStandStill(t *testing.T) {
	docker := enginetest.New()
	web := docker.Run(t, "web")
	docker.Before("ContainerCommit", 0, func() {
		docker.By("web", true)
		docker.InCommit = func() {
			docker.SetPaused(web, false)
			web.Files = "changed meanwhile"
		}
	})
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindImage(created.ImageID).Files, "changed meanwhile")
	assert.Equal(t, created.Container.State, labels.StateRunning)
	assert.Equal(t, web.State, "running")
	assert.DeepEqual(t, web.Commits, []bool{true, false})
}

func TestCreateObservesAgainWhatWasPausedForAMoment(t *testing.T) {
	docker := enginetest.New()
	web := docker.Run(t, "web")
	docker.By("web", true)
	docker.Before("ContainerCommit", 0, func() { docker.By("web", false) })
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Equal(t, created.Container.State, labels.StateRunning)
	assert.Equal(t, web.State, "running")
}

// peerSnapshot is a snapshot of peer that is being taken: it has frozen both.
func peerSnapshot(t *testing.T, docker *enginetest.Docker) archives.Backup {
	t.Helper()
	backup, err := docker.Service.Begin(t.Context(), volumebackup.BackupOptions{
		Container: docker.FindContainer("peer").ID, Volumes: []volumebackup.Volume{{Key: "data"}},
		Freezes: []string{docker.FindContainer("web").ID, docker.FindContainer("peer").ID},
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
			docker.By("web", paused)
			docker.By("peer", paused)
			waited := false
			docker.Service.Waiting = func(holder string) {
				waited = true
				assert.Equal(t, holder, volumebackup.LockName(docker.FindContainer("peer").ID))
				assert.Equal(t, docker.Count("ContainerPause"), 0)
				docker.By("web", false)
				docker.By("peer", false)
				assert.NilError(t, first.Close())
			}
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Assert(t, waited)
			assert.Equal(t, created.Container.State, labels.StateRunning)
			assert.Equal(t, docker.FindContainer("web").State+docker.FindContainer("peer").State, "runningrunning")
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
		docker.Before("pass", 0, func() { _ = peerSnapshot(t, docker) })
		docker.Service.Waiting = func(string) { t.Error("they wait for each other") }
		_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
		assert.NilError(t, err)
	})
}

// What a killed snapshot of another container has left frozen is thawed.
func TestCreateThawsWhatADeadSnapshotHasFrozen(t *testing.T) {
	for _, name := range []string{"web", "peer"} {
		t.Run(name, func(t *testing.T) {
			docker := withSharer(t)
			assert.NilError(t, peerSnapshot(t, docker).(*enginetest.FakeBackup).Abandon())
			docker.By(name, true)
			created, err := createWeb(t, docker, nil)
			assert.NilError(t, err)
			assert.Equal(t, created.Container.State, labels.StateRunning)
			assert.Equal(t, docker.FindContainer("web").State+docker.FindContainer("peer").State, "runningrunning")
		})
	}
}

// Both errors are told, and the journal stays, so that the next command thaws.
func TestCreateLeavesItsJournalIfItCannotThaw(t *testing.T) {
	docker := withSharer(t)
	web := docker.FindContainer("web").ID
	docker.Before("pass", 1, func() {
		docker.Refused = []string{"pass", "ContainerUnpause " + web}
	})
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.ErrorContains(t, err, "refused pass")
	assert.ErrorContains(t, err, "is still paused, thaw it with docker unpause")
	assert.Equal(t, docker.FindContainer("web").State+docker.FindContainer("peer").State, "pausedrunning")
	docker.Refused = nil
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Equal(t, created.Container.State, labels.StateRunning)
	assert.Equal(t, docker.FindContainer("web").State, "running")
}

// A pause that was carried out, and answered with an error, is one all the same.
func TestAPauseIsWhatTheStateSays(t *testing.T) {
	docker := withSharer(t)
	docker.Spoiled = "ContainerPause"
	created, err := createWeb(t, docker, nil)
	assert.NilError(t, err)
	assert.Assert(t, created.Frozen > 0)
	assert.Equal(t, docker.FindContainer("web").State+docker.FindContainer("peer").State, "runningrunning")
	assert.Assert(t, slices.Contains(docker.Calls, "ContainerUnpause "+docker.FindContainer("peer").ID))
}

// The engine itself pauses a container without volumes while it commits it.
func TestThePauseOfACommitCounts(t *testing.T) {
	for name, test := range map[string]struct {
		took     time.Duration
		busy     int // commits fail first, and pause the container as well
		warnings []string
	}{
		"short": {took: time.Second},
		"long": {took: 3 * time.Second, warnings: []string{"container web stood still for 3s: the engine took 3s to commit the root filesystem, which it reads as a whole. " +
			"Keep data that grows in a volume: of a volume only recent changes are read while the container stands still"}},
		"tried again": {took: 2 * time.Second, busy: 1},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			docker.Create(t, "web", &container.Config{}, &container.HostConfig{}).State = "running"
			docker.BusyCommits = test.busy
			docker.InCommit = func() { docker.Clock = docker.Clock.Add(test.took) }
			var got enginetest.Events
			created, err := createWeb(t, docker, got.Progress)
			assert.NilError(t, err)
			assert.Equal(t, created.Frozen.Round(time.Millisecond), test.took) // events are a nanosecond apart
			assert.DeepEqual(t, got.Warnings(), test.warnings)
		})
	}
}

func TestAContainerThatDoesNotRunStandsStillForNoTime(t *testing.T) {
	for _, state := range []string{"exited", "paused"} {
		docker := enginetest.New()
		docker.Create(t, "web", &container.Config{}, &container.HostConfig{}).State = state
		docker.InCommit = func() { docker.Clock = docker.Clock.Add(time.Minute) }
		created, err := createWeb(t, docker, nil)
		assert.NilError(t, err)
		assert.Equal(t, created.Frozen, time.Duration(0), state)
	}
}
