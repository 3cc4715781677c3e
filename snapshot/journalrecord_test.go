package snapshot

import (
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// What a dead worker says is only done if the store has recorded it for that very worker.
func TestAJournalThatTheStoreHasNotRecordedChangesNothing(t *testing.T) {
	for name, forge := range map[string]func(docker *fakeDocker, dead *fakeContainer){
		"never recorded": func(docker *fakeDocker, dead *fakeContainer) { delete(docker.records, dead.id) },
		"of another journal": func(docker *fakeDocker, dead *fakeContainer) {
			docker.records[dead.id] = journalText(soundJournal())
		},
		"of another worker": func(docker *fakeDocker, dead *fakeContainer) {
			docker.records[docker.newID()] = docker.records[dead.id]
			delete(docker.records, dead.id)
		},
		"in another store": func(_ *fakeDocker, dead *fakeContainer) {
			dead.mounts[len(dead.mounts)-1].Name = "other"
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			lock := volumebackup.LockName(docker.findContainer("web").id)
			killedAt(t, docker, "apply data", 1)
			forge(docker, docker.findContainer(lock))
			// The worker that wrote the volumes has no journal, and is removed.
			assert.NilError(t, docker.ContainerRemove(t.Context(), lock+"-000065", container.RemoveOptions{}))
			before := docker.world()
			_, err := engineOf(docker).Recover(t.Context(), "web", nil)
			unknown, ok := errors.AsType[*replace.UnknownJournalError](err)
			assert.Assert(t, ok, "%v", err)
			assert.Equal(t, unknown.Container, "web")
			_, err = engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
			assert.Assert(t, err != nil)
			assert.Equal(t, docker.world(), before)
		})
	}
}

// A client that is killed before its journal is recorded has changed nothing, so only its
// workers go.
func TestAnOperationThatWasNotRecordedYetIsForgotten(t *testing.T) {
	for _, gone := range []bool{false, true} {
		docker := withTwo(t)
		if gone {
			assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
		}
		before := docker.world()
		killedAt(t, docker, "record journal", 0)
		docker.forgetCalls()
		assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil))
		assert.Equal(t, docker.world(), before)
	}
}

func TestTheRecordGoesWithTheOperation(t *testing.T) {
	for name, operate := range map[string]func(*testing.T, *fakeDocker) error{
		"done": func(*testing.T, *fakeDocker) error { return nil },
		"rolled back": func(_ *testing.T, docker *fakeDocker) error {
			docker.startError = errors.New("it does not start")
			docker.before("ContainerRemove", 0, func() { docker.startError = nil })
			return docker.startError
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			want := operate(t, docker)
			_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			assert.Equal(t, err == nil, want == nil, "%v", err)
			assert.Equal(t, len(docker.records), 0)
		})
	}
	t.Run("recovered", func(t *testing.T) {
		docker := withTwo(t)
		killedAt(t, docker, "apply data", 1)
		assert.Equal(t, len(docker.records), 1)
		recoverAll(t, docker)
		assert.Equal(t, len(docker.records), 0)
	})
}

// A restore may be over, and the record of its journal gone, by the time that somebody who
// has waited for it asks for the record.
func TestAnOperationThatIsOverByNowIsNotUnknown(t *testing.T) {
	for name, end := range map[string]func(docker *fakeDocker, lock *fakeContainer){
		"settled": func(_ *fakeDocker, lock *fakeContainer) { lock.name = volumebackup.SettledName(lock.id) },
		"gone": func(docker *fakeDocker, lock *fakeContainer) {
			assert.NilError(t, docker.ContainerRemove(t.Context(), lock.id, container.RemoveOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			lock := volumebackup.LockName(docker.findContainer("web").id)
			killedAt(t, docker, "apply data", 1)
			listed, err := engineOf(docker).pending.Replacements(t.Context(), pending.Scope{Words: []string{"web"}}, nil)
			assert.NilError(t, err)
			assert.Equal(t, len(listed), 1)
			dead := docker.findContainer(lock)
			delete(docker.records, dead.id)
			end(docker, dead)
			done, err := engineOf(docker).replace.Recover(t.Context(), listed[0], nil)
			assert.NilError(t, err)
			assert.Assert(t, done == nil)
		})
	}
}
