package snapshot

import (
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// What a dead worker says is only done if the store has recorded it for that very worker.
func TestAJournalThatTheStoreHasNotRecordedChangesNothing(t *testing.T) {
	for name, forge := range map[string]func(docker *enginetest.Docker, dead *enginetest.FakeContainer){
		"never recorded": func(docker *enginetest.Docker, dead *enginetest.FakeContainer) { delete(docker.Records, dead.ID) },
		"of another journal": func(docker *enginetest.Docker, dead *enginetest.FakeContainer) {
			docker.Records[dead.ID] = `{"name":"another"}`
		},
		"of another worker": func(docker *enginetest.Docker, dead *enginetest.FakeContainer) {
			docker.Records[docker.NewID()] = docker.Records[dead.ID]
			delete(docker.Records, dead.ID)
		},
		"in another store": func(_ *enginetest.Docker, dead *enginetest.FakeContainer) {
			dead.Mounts[len(dead.Mounts)-1].Name = "other"
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			lock := volumebackup.LockName(docker.FindContainer("web").ID)
			killedAt(t, docker, "apply data", 1)
			forge(docker, docker.FindContainer(lock))
			// The worker that wrote the volumes has no journal, and is removed.
			assert.NilError(t, docker.ContainerRemove(t.Context(), lock+"-000065", container.RemoveOptions{}))
			before := docker.World()
			_, err := engineOf(docker).Recover(t.Context(), "web", nil)
			unknown, ok := errors.AsType[*replace.UnknownJournalError](err)
			assert.Assert(t, ok, "%v", err)
			assert.Equal(t, unknown.Container, "web")
			_, err = engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
			assert.Assert(t, err != nil)
			assert.Equal(t, docker.World(), before)
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
		before := docker.World()
		killedAt(t, docker, "record journal", 0)
		docker.ForgetCalls()
		assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil))
		assert.Equal(t, docker.World(), before)
	}
}

func TestTheRecordGoesWithTheOperation(t *testing.T) {
	for name, operate := range map[string]func(*testing.T, *enginetest.Docker) error{
		"done": func(*testing.T, *enginetest.Docker) error { return nil },
		"rolled back": func(_ *testing.T, docker *enginetest.Docker) error {
			docker.StartRefused = errors.New("it does not start")
			return docker.StartRefused
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			want := operate(t, docker)
			_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			assert.Equal(t, err == nil, want == nil, "%v", err)
			assert.Equal(t, len(docker.Records), 0)
		})
	}
	t.Run("recovered", func(t *testing.T) {
		docker := withTwo(t)
		killedAt(t, docker, "apply data", 1)
		assert.Equal(t, len(docker.Records), 1)
		recoverAll(t, docker)
		assert.Equal(t, len(docker.Records), 0)
	})
}

// A restore may be over, and the record of its journal gone, by the time that somebody who
// has waited for it asks for the record.
func TestAnOperationThatIsOverByNowIsNotUnknown(t *testing.T) {
	for name, end := range map[string]func(docker *enginetest.Docker, lock *enginetest.FakeContainer){
		"settled": func(_ *enginetest.Docker, lock *enginetest.FakeContainer) {
			lock.Name = volumebackup.SettledName(lock.ID)
		},
		"gone": func(docker *enginetest.Docker, lock *enginetest.FakeContainer) {
			assert.NilError(t, docker.ContainerRemove(t.Context(), lock.ID, container.RemoveOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withTwo(t)
			lock := volumebackup.LockName(docker.FindContainer("web").ID)
			killedAt(t, docker, "apply data", 1)
			listed, err := engineOf(docker).pending.Replacements(t.Context(), pending.Scope{Words: []string{"web"}}, nil)
			assert.NilError(t, err)
			assert.Equal(t, len(listed), 1)
			dead := docker.FindContainer(lock)
			delete(docker.Records, dead.ID)
			end(docker, dead)
			done, err := engineOf(docker).replace.Recover(t.Context(), listed[0], nil)
			assert.NilError(t, err)
			assert.Assert(t, done == nil)
		})
	}
}
