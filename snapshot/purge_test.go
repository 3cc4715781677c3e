package snapshot

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// toPurge is an engine with snapshots in two stores, a restored copy, a tag without its
// snapshot, an image that was built FROM one, and the container of a dead worker.
func toPurge(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withMine(t, "id")
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: volumebackup.DefaultStore, Labels: map[string]string{labels.KeyStoreID: "other"}})
	assert.NilError(t, err)
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "two", Pinned: true})
	restore1(t, docker, runconfig.RestoreOptions{Snapshot: "two", Name: "copy"})
	docker.Randomness = 200
	loose := snapshotOf(t, docker, capture.Options{Container: "web", Name: "loose"})
	assert.NilError(t, engineOf(docker).docker.RemoveImage(t.Context(), loose.Ref()))
	docker.AddImage("mine:latest", &container.Config{Labels: docker.FindImage("cua-snapshot/web:two").Config.Labels})
	dead := docker.Service.Worker("", map[string]string{volumebackup.LabelPurpose: "list", labels.Prefix + "worker.frozen": "null"}, nil, true)
	dead.End(docker.Clock)
	return docker
}

func TestPurgeRemovesEverythingButContainersAndVolumes(t *testing.T) {
	docker := toPurge(t)
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: "cua-snapshot-run-01", Labels: map[string]string{labels.KeyLock: "killed"}})
	assert.NilError(t, err) // with which a killed client had locked the session of a run
	e := engineOf(docker)
	all, kept, err := e.FindPurgeable(t.Context(), nil)
	assert.NilError(t, err)
	assert.Equal(t, len(kept), 0)
	removed, err := e.Purge(t.Context(), all, nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, removed, all, purgeableEqual)
	assert.Assert(t, docker.FindVolume("cua-snapshot-run-01") == nil)

	var kinds []string
	for _, one := range all {
		kinds = append(kinds, string(one.Kind))
	}
	assert.Equal(t, strings.Join(kinds, " "), "snapshot snapshot tag tag worker store store key worker_image")
	var containers, volumes, tags []string
	for _, c := range docker.Containers {
		containers = append(containers, c.Name+" "+c.State)
	}
	for _, v := range docker.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, i := range docker.Images {
		tags = append(tags, i.Tags...)
	}
	assert.DeepEqual(t, containers, []string{"web running", "copy running"})
	assert.DeepEqual(t, volumes, []string{"data", "data-000065"})
	assert.DeepEqual(t, tags, []string{"busybox:latest", "mine:latest"})
	all, _, err = e.FindPurgeable(t.Context(), nil)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 0)
}

var purgeableEqual = cmp.AllowUnexported(removal.Purgeable{})

// What is in the way of one thing does not keep the rest.
func TestPurgeGoesOn(t *testing.T) {
	docker := toPurge(t)
	docker.Create(t, "reader", &container.Config{}, &container.HostConfig{Binds: []string{"mine:/store:ro"}})
	e := engineOf(docker)
	all, _, err := e.FindPurgeable(t.Context(), nil)
	assert.NilError(t, err)
	removed, err := e.Purge(t.Context(), all, nil)
	assert.ErrorContains(t, err, "remove store mine: ")
	assert.Equal(t, len(removed), len(all)-1)
	assert.Assert(t, docker.FindVolume("mine") != nil)
}

// A store that a user has made is the user's.
func TestPurgeLeavesStoresOfUsers(t *testing.T) {
	docker := withMine(t, "id")
	docker.FindVolume("mine").Labels = nil
	all, kept, err := engineOf(docker).FindPurgeable(t.Context(), nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, kept, []string{"mine"})
	assert.Assert(t, !slices.ContainsFunc(all, func(one removal.Purgeable) bool { return one.Kind == removal.PurgeStore }))
}

func TestPurgeRefusesWhileSomethingIsLeftToDo(t *testing.T) {
	docker := withMine(t, "id")
	killedAt(t, docker, "apply data", 1)
	before := docker.World()
	_, _, err := engineOf(docker).FindPurgeable(t.Context(), nil)
	_, interrupted := errors.AsType[*removal.InterruptedError](err)
	assert.Assert(t, interrupted, "%v", err)
	_, err = engineOf(docker).Purge(t.Context(), []removal.Purgeable{{Kind: removal.PurgeKey, Name: catalog.KeyVolume}}, nil)
	assert.Assert(t, err != nil)
	assert.Equal(t, docker.World(), before)
	recoverAll(t, docker)
	_, _, err = engineOf(docker).FindPurgeable(t.Context(), nil)
	assert.NilError(t, err)

	docker.Service.Worker("", map[string]string{volumebackup.LabelPurpose: "list"}, nil, true)
	_, _, err = engineOf(docker).FindPurgeable(t.Context(), nil)
	_, locked := errors.AsType[*volumebackup.LockedError](err)
	assert.Assert(t, locked, "%v", err)
}

// A worker that has died and holds nothing is cleared away by recover, and by the next create.
func TestDeadWorkersThatHoldNothingGo(t *testing.T) {
	for _, use := range []func(*enginetest.Docker) error{
		func(docker *enginetest.Docker) error {
			_, err := engineOf(docker).Recover(t.Context(), "", nil)
			return err
		},
		func(docker *enginetest.Docker) error {
			_, err := engineOf(docker).Recover(t.Context(), "web", nil)
			return err
		},
		func(docker *enginetest.Docker) error {
			_, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, nil)
			return err
		},
	} {
		docker := toPurge(t)
		assert.NilError(t, use(docker))
		assert.Assert(t, !slices.ContainsFunc(docker.Containers, func(c *enginetest.FakeContainer) bool { return c.Config.Image == enginetest.WorkerImage }), docker.World())
	}
}
