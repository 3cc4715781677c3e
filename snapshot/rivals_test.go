package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// halfWay are moments at which a restore in place has begun to change things.
var halfWay = map[string]struct {
	call string
	skip int
}{
	"the old one is aside":      {"apply data", 0},
	"a volume is half written":  {"apply data", 1},
	"the volumes are written":   {"ContainerCreate web", 0},
	"the new one is being made": {"ContainerStart", 0},
}

// Whoever has looked before another restore began, and gets the lock when that one's
// client has died, must not take what it left for what was there.
func TestAWaiterTakesBackWhatItHasWaitedFor(t *testing.T) {
	for name, moment := range halfWay {
		t.Run("restore, "+name, func(t *testing.T) {
			docker := withTwo(t)
			old := docker.FindContainer("web").ID
			engine := engineUsing(docker, docker.Service.After(func() { killedAt(t, docker, moment.call, moment.skip) }))
			replaced, err := engine.Replace(t.Context(), replaceOptions(), nil)
			assert.NilError(t, err)
			assertReplaced(t, docker, old)
			assert.DeepEqual(t, docker.Service.Archives[string(replaced.Safety.ID)], []string{"two"})
		})
		t.Run("create, "+name, func(t *testing.T) {
			docker := withTwo(t)
			old := docker.FindContainer("web").ID
			engine := engineUsing(docker, docker.Service.After(func() { killedAt(t, docker, moment.call, moment.skip) }))
			created, err := engine.Create(t.Context(), capture.Options{Container: "web"}, nil)
			assert.NilError(t, err)
			assert.DeepEqual(t, docker.Service.Archives[string(created.ID)], []string{"two"})
			assert.Equal(t, docker.Data(), "two")
			assert.Equal(t, docker.FindContainer("web").ID, old)
			assert.Equal(t, docker.FindContainer("web").State, "running")
		})
	}
}

// withPeer adds a container that shares the volume, and does not run.
func withPeer(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withTwo(t)
	docker.Create(t, "peer", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	return docker
}

// A volume that a restore of another container is writing, or has half written, is
// not archived.
func TestCreateWaitsForWhoWritesItsVolumes(t *testing.T) {
	for name, prepare := range map[string]func(*enginetest.Docker, func()) *Engine{
		"seen before": func(docker *enginetest.Docker, begin func()) *Engine {
			begin()
			return engineOf(docker)
		},
		"begun meanwhile": func(docker *enginetest.Docker, begin func()) *Engine {
			return engineUsing(docker, docker.Service.After(begin))
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withPeer(t)
			docker.Service.Waiting = func(string) { // the other one ends meanwhile
				docker.Service.Waiting = nil
				docker.ClientDies()
				_, err := engineOf(docker).Recover(t.Context(), "", nil)
				assert.NilError(t, err)
			}
			engine := prepare(docker, func() { replaceUntil(t, docker, "apply data", 1) })
			created, err := engine.Create(t.Context(), capture.Options{Container: "peer"}, nil)
			assert.NilError(t, err)
			assert.DeepEqual(t, docker.Service.Archives[string(created.ID)], []string{"two"})
		})
	}
	t.Run("which is not for ever", func(t *testing.T) {
		docker := withPeer(t)
		replaceUntil(t, docker, "apply data", 1)
		_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "peer"}, nil)
		assert.ErrorContains(t, err, "another snapshot operation is under way (restore ")
	})
	t.Run("but puts right what a dead one has left", func(t *testing.T) {
		docker := withPeer(t)
		killedAt(t, docker, "apply data", 1)
		created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "peer"}, nil)
		assert.NilError(t, err)
		assert.DeepEqual(t, docker.Service.Archives[string(created.ID)], []string{"two"})
	})
}

// A volume that is being archived for another container is not written.
func TestReplaceWaitsForWhoReadsItsVolumes(t *testing.T) {
	docker := withPeer(t)
	old := docker.FindContainer("web").ID
	reader, err := docker.Service.Begin(t.Context(), volumebackup.BackupOptions{
		Container: docker.FindContainer("peer").ID, Volumes: []volumebackup.Volume{{Name: "data"}},
	}, nil)
	assert.NilError(t, err)
	waited := false
	docker.Service.Waiting = func(string) {
		waited = true
		assert.Equal(t, docker.Data(), "two")
		assert.Equal(t, docker.FindContainer(old).State, "running")
		assert.NilError(t, reader.Close())
	}
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.NilError(t, err)
	assert.Assert(t, waited)
	assertReplaced(t, docker, old)
}

// The worker of a restore that waits for the lock waits with it, and must not be waited for.
func TestReplaceDoesNotWaitForWhoWaitsForIt(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	docker.Service.Worker("", map[string]string{volumebackup.LabelPurpose: "restore", "cua.snapshot.worker.frozen": "null"}, []string{"data"}, false)
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.NilError(t, err)
	assertReplaced(t, docker, old)
}

// Of two restores in place that meet on a volume, one gives way while the other waits
// for that.
func TestReplacesThatShareAVolumeDoNotMeet(t *testing.T) {
	docker := withPeer(t)
	old := docker.FindContainer("web").ID
	snapshotOf(t, docker, capture.Options{Container: "peer"})
	docker.Randomness += 50
	waited := false
	docker.Service.Waiting = func(string) {
		waited = true
		docker.ClientDies()
	}
	engine := engineUsing(docker, docker.Service.After(func() { replaceUntil(t, docker, "apply data", 1) }))
	o := replaceOptions()
	o.Snapshot, o.StopOthers = "peer:latest", true
	replaced, err := engine.Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.Assert(t, waited)
	assert.DeepEqual(t, docker.Service.Archives[string(replaced.Safety.ID)], []string{"two"})
	assert.Equal(t, docker.FindContainer("web").ID, old)
	assert.Equal(t, docker.FindContainer("web").State, "running")
}

// A label comes with an image, and the image from anywhere.
func TestLabelsOfStrangersRepairNothing(t *testing.T) {
	docker := withTwo(t)
	docker.Create(t, "precious", &container.Config{}, &container.HostConfig{})
	docker.Volumes = append(docker.Volumes, &enginetest.FakeVolume{Name: "kept"})
	for i, journal := range []map[string]string{
		{pending.LabelMade: `["kept"]`},
		{pending.LabelMade: `nonsense`},
		{pending.LabelJournal: `nonsense`},
		{pending.LabelJournal: fmt.Sprintf(`{"name":"web","old":%q,"old_name":"web","snapshot":"20260131-120000-000001","worker":"precious","volumes":["data"]}`, docker.FindContainer("web").ID)},
	} {
		maps.Copy(journal, volumebackup.JournalLabels("v1"))
		journal[volumebackup.LabelPurpose] = "create"
		journal["cua.snapshot.worker.frozen"] = "null"
		evil := docker.Create(t, "evil"+string(rune('0'+i)), &container.Config{Labels: journal}, &container.HostConfig{})
		evil.State = "exited"
	}
	engine := engineOf(docker)
	_, err := engine.Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.NilError(t, err)
	_, err = engine.Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one"}, nil)
	assert.NilError(t, err)
	done, err := engine.Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.Equal(t, len(done), 0)
	assert.Assert(t, docker.FindVolume("kept") != nil)
	for _, name := range []string{"precious", "evil0", "evil1", "evil2", "evil3"} {
		assert.Assert(t, docker.FindContainer(name) != nil, name)
	}
}

// A journal of a later version stands in nobody's way but its own container's.
func TestAJournalThatNobodyUnderstandsIsLeftAlone(t *testing.T) {
	docker := withPeer(t)
	web := docker.FindContainer("web")
	docker.Service.Worker(volumebackup.LockName(web.ID)+"-123456", map[string]string{
		volumebackup.LabelPurpose: "restore", pending.LabelJournal: "later", "cua.snapshot.worker.frozen": "null",
		"cua.snapshot.worker.journal": "2", "cua.snapshot.worker.plugin": "v9",
	}, nil, false).State = "exited"
	var got enginetest.Events
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "peer"}, got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, strings.Contains(strings.Join(got.Warnings(), "\n"), "is left alone: read journal"))
	_, err = engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.ErrorContains(t, err, `read journal: it is of version "2"`)
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	other, ok := errors.AsType[*volumebackup.JournalVersionError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, other.Plugin, "v9")
}

// A worker ends a moment after its client was killed: who recovers at once waits for that,
// and not for one that goes on.
func TestRecoverWaitsForAWorkerThatIsAboutToEnd(t *testing.T) {
	for _, ends := range []bool{true, false} {
		docker := withTwo(t)
		web := docker.FindContainer("web").ID
		replaceUntil(t, docker, "apply data", 1)
		if ends {
			docker.Before("ContainerList", 1, docker.ClientDies)
		}
		done, err := engineOf(docker).Recover(t.Context(), "web", nil)
		assert.NilError(t, err)
		if !ends {
			assert.Equal(t, len(done), 0)
			continue
		}
		assert.Equal(t, docker.FindContainer("web").ID, web)
		assert.Equal(t, docker.Data(), "two")
	}
}

// A restore in place that is taken back has the container set aside; it may be over when
// somebody who did not find the container looks for that restore.
func TestCreateLooksAgainForAContainerThatWasAside(t *testing.T) {
	docker := withTwo(t)
	web := docker.FindContainer("web")
	docker.Before("ContainerInspect", 0, func() {
		web.Name = "aside"
		docker.Before("ContainerInspect", 0, func() { web.Name = "web" })
	})
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.NilError(t, err)
}

// Volumes are not put back under a container that uses them now.
func TestRecoverLeavesAVolumeInUseAlone(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	killedAt(t, docker, "ContainerCreate web", 0)
	user := docker.Create(t, "user", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	user.State = "running"
	docker.FindVolume("data").Content = "three"
	for range 2 {
		_, err := engineOf(docker).Recover(t.Context(), "web", nil)
		assert.ErrorContains(t, err, "volume data is in use by container user")
		assert.Equal(t, docker.Data(), "three")
	}
	user.State = "exited"
	_, err := engineOf(docker).Recover(t.Context(), "web", nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.Data(), "two")
	assert.Equal(t, docker.FindContainer("web").ID, old)
}

// A new container that was at work for long after its restore was interrupted keeps
// what it has written.
func TestRecoverFinishesWhatHasGoneOn(t *testing.T) {
	for name, tc := range map[string]struct {
		later    time.Duration
		change   func(*enginetest.Docker, *enginetest.FakeContainer)
		finished bool
	}{
		"soon":                       {time.Minute, func(*enginetest.Docker, *enginetest.FakeContainer) {}, false},
		"much later":                 {time.Hour, func(*enginetest.Docker, *enginetest.FakeContainer) {}, true},
		"much later, it has ended":   {time.Hour, func(f *enginetest.Docker, made *enginetest.FakeContainer) { made.End(f.Clock) }, true},
		"much later, it ended early": {time.Hour, func(f *enginetest.Docker, made *enginetest.FakeContainer) { made.End(f.Clock.Add(-time.Hour)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			old := docker.FindContainer("web").ID
			killedAt(t, docker, "held", 1) // it is up, but the restore is not settled
			made := docker.FindContainer("web")
			assert.Assert(t, made.ID != old && made.State == "running")
			docker.FindVolume("data").Content = "three"
			docker.Clock = docker.Clock.Add(tc.later)
			tc.change(docker, made)
			done, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			web := docker.FindContainer("web")
			if !tc.finished {
				assert.Equal(t, web.ID+docker.Data(), old+"two")
				return
			}
			assert.Equal(t, web.ID+docker.Data(), made.ID+"three")
			assert.Assert(t, docker.FindContainer(old) == nil)
			finished := func(r replace.Recovery) bool { return strings.Contains(r.Text, "the restore of ") }
			assert.Assert(t, slices.ContainsFunc(done, finished), "%v", done)
			again, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			assert.Equal(t, len(again), 0)
		})
	}
}

// A client that is killed when its restore was settled leaves the rest to its guard,
// which waits for the worker to end.
func TestSettleFinishesASettledRestore(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	replaceUntil(t, docker, "ContainerRemove "+old, 0)
	docker.Service.Waiting = func(string) { docker.ClientDies() }
	assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil))
	assertReplaced(t, docker, old)
}

func TestTheReplacedContainerIsKeptIfItIsTheLast(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	killedAt(t, docker, "ContainerRemove "+old, 0)
	assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
	var got enginetest.Events
	_, err := engineOf(docker).Recover(t.Context(), "", got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, docker.FindContainer(old) != nil)
	assert.Assert(t, strings.Contains(strings.Join(got.Warnings(), "\n"), "is kept"))
}

// A restore whose lock was lost, because somebody has killed the worker that held it,
// goes no further; whether or not another command has put things right by then.
func TestReplaceNoticesThatItsLockIsLost(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, *enginetest.Docker){
		"killed":                func(*testing.T, *enginetest.Docker) {},
		"killed, and recovered": func(t *testing.T, docker *enginetest.Docker) { t.Helper(); recoverAll(t, docker) },
		"removed": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			assert.NilError(t, docker.ContainerRemove(t.Context(), docker.Lock("web"), container.RemoveOptions{Force: true}))
		},
	} {
		for _, call := range []string{"ContainerStop", "ContainerRename", "ContainerCreate web", "ContainerStart"} {
			t.Run(name+" at "+call, func(t *testing.T) {
				docker := withTwo(t)
				old := docker.FindContainer("web")
				lock := volumebackup.LockName(old.ID)
				docker.Before(call, 0, func() {
					docker.Kill(lock)
					meanwhile(t, docker)
				})
				_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
				assert.Assert(t, err != nil)
				written := slices.ContainsFunc(docker.Calls, func(call string) bool { return strings.HasPrefix(call, "apply") })
				assert.Equal(t, written, call != "ContainerStop" && call != "ContainerRename")
				recoverAll(t, docker)
				assert.Equal(t, docker.FindContainer("web"), old, docker.World())
				assert.Equal(t, old.State+docker.Data(), "runningtwo")
				assert.Assert(t, !strings.Contains(docker.World(), "container cua-snapshot"), docker.World())
			})
		}
	}
}

// Nor does it take anything back before it has the lock again.
func TestReplaceTakesItsLockAgainToTakeBack(t *testing.T) {
	docker := withTwo(t)
	lock := volumebackup.LockName(docker.FindContainer("web").ID)
	held := false
	docker.Before("ContainerCreate web", 0, func() {
		docker.Kill(lock)
		docker.Before("ContainerRemove", 0, func() { // of the new one
			c := docker.FindContainer(lock)
			held = c != nil && c.State == "running"
		})
	})
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.ErrorContains(t, err, "everything was put back")
	assert.Assert(t, held)
}

// If it cannot have the lock again, as while its engine restarts, the journal stays: it is
// all that the guard, and recover, know of.
func TestReplaceThatCannotTakeItsLockAgainLeavesItsJournal(t *testing.T) {
	for name, refused := range map[string][]string{
		"no lock": {"launch cua-snapshot-"}, "no record": {"record journal"}, "neither a record nor a removal": {"record journal", "close", "ContainerRemove"},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			old := docker.FindContainer("web")
			lock := volumebackup.LockName(old.ID)
			docker.Before("ContainerCreate web", 0, func() {
				docker.Kill(lock)
				docker.Refused = refused
			})
			_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			assert.Assert(t, err != nil)
			docker.Refused = nil
			docker.ClientDies()
			recoverAll(t, docker)
			assert.Equal(t, docker.FindContainer("web"), old, docker.World())
			assert.Equal(t, old.State+docker.Data(), "runningtwo")
			assert.Assert(t, !strings.Contains(docker.World(), "container cua-snapshot"), docker.World())
		})
	}
}

// The worker with which it could not have the lock again may be left, too. Its journal was
// not recorded, which is no reason to leave the recorded one alone.
func TestAWorkerWithoutARecordDoesNotHideTheOneThatHasIt(t *testing.T) {
	for name, repair := range map[string]func(e *Engine) error{
		"recover": func(e *Engine) error { _, err := e.Recover(t.Context(), "web", nil); return err },
		"guard":   func(e *Engine) error { return e.Settle(t.Context(), "web", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			lock := volumebackup.LockName(docker.FindContainer("web").ID)
			killedAt(t, docker, "apply data", 1)
			again := *docker.FindContainer(lock)
			again.ID, again.Name = docker.NewID(), lock+"-again"
			docker.Containers = append(docker.Containers, &again)
			assert.NilError(t, repair(engineOf(docker)))
			assert.Equal(t, docker.FindContainer("web").State+docker.Data(), "runningtwo")
			assert.Assert(t, !strings.Contains(docker.World(), "container cua-snapshot"), docker.World())
		})
	}
}

func recoverAll(t *testing.T, docker *enginetest.Docker) {
	t.Helper()
	_, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
}
