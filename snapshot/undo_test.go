package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// later lets a minute pass, so that each snapshot has its own time and ID.
func later(docker *enginetest.Docker) {
	docker.Wait(time.Minute)
	docker.Randomness += 20
}

// setWeb changes all that there is of web.
func setWeb(docker *enginetest.Docker, text string) {
	docker.FindContainer("web").Files = text
	docker.FindVolume("data").Content, docker.FindVolume("logs").Content = text, text
}

// restoreWeb restores in place.
func restoreWeb(t *testing.T, docker *enginetest.Docker, o replace.Options) replace.Result {
	t.Helper()
	later(docker)
	done, err := engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	return done
}

// undo takes the last restore of a container back.
func undo(t *testing.T, docker *enginetest.Docker, name string) []replace.Result {
	t.Helper()
	later(docker)
	all, err := engineOf(docker).FindUndo(t.Context(), name)
	assert.NilError(t, err)
	for i := range all {
		all[i].Wait = true
	}
	done, err := engineOf(docker).ReplaceTogether(t.Context(), all, nil)
	assert.NilError(t, err)
	return done
}

// assertNoUndo checks that there is nothing to undo, and why.
func assertNoUndo(t *testing.T, docker *enginetest.Docker, name, why string) {
	t.Helper()
	_, err := engineOf(docker).FindUndo(t.Context(), name)
	var none *replace.NoUndoError
	assert.Assert(t, errors.As(err, &none), "%v", err)
	assert.ErrorContains(t, err, why)
}

func filesOfWeb(docker *enginetest.Docker) string {
	return strings.Fields(stateOfWeb(docker))[0]
}

func TestUndoGoesBackFurtherEachTime(t *testing.T) {
	docker := withTwoVolumes(t)
	assertNoUndo(t, docker, "web", "nothing to undo: container web was not restored in place")
	restoreWeb(t, docker, replaceOptions()) // two -> one
	setWeb(docker, "three")
	restoreWeb(t, docker, replaceOptions()) // three -> one
	undo(t, docker, "web")
	assert.Equal(t, stateOfWeb(docker), "three three three running always")
	setWeb(docker, "four")
	undo(t, docker, "web")
	assert.Equal(t, stateOfWeb(docker), "two two two running always")
	assertNoUndo(t, docker, "web", "every restore in place of container web is taken back already")
	assertNothingLeft(t, docker)
}

// A restore after an undo begins a new history, as in an editor; the restores before it can still be taken back.
func TestRestoreAfterUndo(t *testing.T) {
	docker := withTwoVolumes(t)
	restoreWeb(t, docker, replaceOptions())
	setWeb(docker, "three")
	restoreWeb(t, docker, replaceOptions())
	undo(t, docker, "web") // three
	setWeb(docker, "four")
	restoreWeb(t, docker, replaceOptions())
	undo(t, docker, "web")
	assert.Equal(t, filesOfWeb(docker), "four")
	undo(t, docker, "web")
	assert.Equal(t, filesOfWeb(docker), "two")
	assertNoUndo(t, docker, "web", "taken back already")
}

func TestUndoTouchesOnlyWhatWentBack(t *testing.T) {
	for _, live := range []bool{false, true} {
		docker := withTwoVolumes(t)
		o := only("/data")
		o.Live, o.Paths = live, []string{"**/cont*"}
		restoreWeb(t, docker, o)
		id := docker.FindContainer("web").ID
		docker.FindVolume("logs").Content, docker.FindContainer("web").Files = "later", "later"
		stops := docker.Count("ContainerStop " + id)
		done := undo(t, docker, "web")
		assert.Equal(t, stateOfWeb(docker), "later two later running always")
		assert.Equal(t, docker.FindContainer("web").ID, id)
		assert.Assert(t, done[0].Keeps && done[0].Freezes == live)
		assert.Equal(t, docker.Count("ContainerStop "+id) == stops, live)
		assert.DeepEqual(t, docker.Service.Applied["data"].Chosen.Patterns, o.Paths)
		assertNoUndo(t, docker, "web", "taken back already")
	}
}

// A restore without a safety snapshot cannot be taken back, and the one before it is not taken back in its place.
func TestUndoStopsAtARestoreWithoutASafetySnapshot(t *testing.T) {
	docker := withTwoVolumes(t)
	restoreWeb(t, docker, replaceOptions())
	setWeb(docker, "three")
	o := replaceOptions()
	o.NoSafety = true
	restoreWeb(t, docker, o)
	assertNoUndo(t, docker, "web", "the last restore in place of container web took no safety snapshot")
	setWeb(docker, "four")
	restoreWeb(t, docker, replaceOptions())
	undo(t, docker, "web")
	assert.Equal(t, filesOfWeb(docker), "four")
	assertNoUndo(t, docker, "web", "took no safety snapshot")
}

func TestUndoNamesASafetySnapshotThatWasRemoved(t *testing.T) {
	docker := withTwoVolumes(t)
	restoreWeb(t, docker, replaceOptions())
	setWeb(docker, "three")
	done := restoreWeb(t, docker, replaceOptions())
	removed := engineOf(docker).Remove(t.Context(), []string{string(done.Safety.ID)}, removal.Options{}, nil)
	assert.NilError(t, removed[0].Err)
	assertNoUndo(t, docker, "web", "was removed: "+string(done.Safety.ID))
}

// A container that is gone, or was made anew, is undone by its name.
func TestUndoFindsTheContainerByItsName(t *testing.T) {
	docker := withTwoVolumes(t)
	restoreWeb(t, docker, replaceOptions())
	assert.NilError(t, docker.ContainerRemove(t.Context(), docker.FindContainer("web").ID, container.RemoveOptions{Force: true}))
	undo(t, docker, "web")
	assert.Equal(t, filesOfWeb(docker), "two")
}

func TestUndoGivesTheNameBackThatTheContainerHad(t *testing.T) {
	docker := withTwoVolumes(t)
	assert.NilError(t, docker.ContainerRename(t.Context(), "web", "web-old"))
	restoreWeb(t, docker, replaceOptions())
	assert.Equal(t, filesOfWeb(docker), "one")
	undo(t, docker, "web")
	assert.Equal(t, filesOfWeb(docker), "two")
	assertNoUndo(t, docker, "web", "nothing to undo")
}

func TestUndoTakesAllBackThatWereRestoredTogether(t *testing.T) {
	docker := withGroup(t)
	together := func() {
		t.Helper()
		later(docker)
		var all []replace.Options
		for _, name := range []string{"db", "web", "job"} {
			all = append(all, replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: name + ":one", Waiting: runconfig.Waiting{Wait: true}}})
		}
		_, err := engineOf(docker).ReplaceTogether(t.Context(), all, nil)
		assert.NilError(t, err)
	}
	together()
	assert.Equal(t, docker.FindVolume("dbdata").Content, "one")
	done := undo(t, docker, "web")
	assert.Equal(t, len(done), 3)
	assert.Equal(t, done[0].Name, "web")
	for _, name := range []string{"db", "web", "job"} {
		assert.Equal(t, docker.FindContainer(name).Files, "two")
		assertNoUndo(t, docker, name, "taken back already")
	}
	for _, name := range groupVolumes {
		assert.Equal(t, docker.FindVolume(name).Content, "two")
	}

	together()
	restoreWeb(t, docker, replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "job:one"}})
	assertNoUndo(t, docker, "db", "db was restored together with job, which was restored again since: undo that first")
	undo(t, docker, "job")
	assert.Equal(t, len(undo(t, docker, "db")), 3)
}

// prune keeps what the next undo restores.
func TestPruneKeepsWhatUndoNeeds(t *testing.T) {
	docker := withTwoVolumes(t)
	first := restoreWeb(t, docker, replaceOptions())
	setWeb(docker, "three")
	second := restoreWeb(t, docker, replaceOptions())
	restoreWeb(t, docker, replaceOptions())
	undone := undo(t, docker, "web")
	pruned, err := engineOf(docker).Prune(t.Context(), removal.PruneOptions{Options: retention.Options{Policy: retention.Policy{MaxSnapshots: 1}}}, nil)
	assert.NilError(t, err)
	kept := map[labels.ID]bool{}
	list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	for _, s := range list {
		kept[s.ID] = true
	}
	assert.Assert(t, kept[second.Safety.ID] && kept[undone[0].Safety.ID], "%v", pruned)
	assert.Assert(t, !kept[first.Safety.ID])
	undo(t, docker, "web")
	assert.Equal(t, filesOfWeb(docker), "three")
}

func TestUndoable(t *testing.T) {
	docker := withTwoVolumes(t)
	words := func() (names []string) {
		t.Helper()
		all, err := engineOf(docker).Undoable(t.Context())
		assert.NilError(t, err)
		for _, one := range all {
			names = append(names, one.Word)
		}
		return names
	}
	assert.Equal(t, len(words()), 0)
	restoreWeb(t, docker, replaceOptions())
	assert.DeepEqual(t, words(), []string{"web"})
	undo(t, docker, "web")
	assert.Equal(t, len(words()), 0)
}
