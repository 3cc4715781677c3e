package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
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
		Container: docker.FindContainer("peer").ID, Volumes: []volumebackup.Volume{{Key: "data"}},
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
		{pending.LabelJournal: fmt.Sprintf(`{"members":[{"name":"web","old":%q,"old_name":"web","snapshot":"20260131-120000-000001"}],"worker":"precious","volumes":["data"]}`, docker.FindContainer("web").ID)},
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
		"cua.snapshot.worker.journal": "3", "cua.snapshot.worker.plugin": "v9",
	}, nil, false).State = "exited"
	var got enginetest.Events
	_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "peer"}, got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, strings.Contains(strings.Join(got.Warnings(), "\n"), "is left alone: read journal"))
	_, err = engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
	assert.ErrorContains(t, err, `read journal: it is of version "3"`)
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	other, ok := errors.AsType[*volumebackup.JournalVersionError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, other.Plugin, "v9")
}
