package snapshot

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

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
