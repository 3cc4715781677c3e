package snapshot

import (
	"errors"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// A snapshot whose store is gone, or is another one of that name, is marked, and that is said.
func TestListMarksSnapshotsWhoseStoreIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*enginetest.Docker, *enginetest.FakeVolume)
		gone   bool
	}{
		"there": {func(*enginetest.Docker, *enginetest.FakeVolume) {}, false},
		"removed": {func(f *enginetest.Docker, v *enginetest.FakeVolume) {
			f.Volumes = slices.DeleteFunc(f.Volumes, func(one *enginetest.FakeVolume) bool { return one == v })
		}, true},
		"made anew":      {func(_ *enginetest.Docker, v *enginetest.FakeVolume) { v.Labels[labels.KeyStoreID] = "another" }, true},
		"made by a user": {func(_ *enginetest.Docker, v *enginetest.FakeVolume) { v.Labels = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			service := docker.Service
			_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: service.Store(), Labels: map[string]string{labels.KeyStoreID: "one"}})
			assert.NilError(t, err)
			docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
			created := snapshotOf(t, docker, capture.Options{Container: "web"})
			assert.Equal(t, created.Store, service.Store())
			assert.Equal(t, created.StoreID, "one")
			tc.change(docker, docker.FindVolume(service.Store()))

			var got enginetest.Events
			list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, got.Progress)
			assert.NilError(t, err)
			assert.Assert(t, is.Len(list, 1))
			assert.Equal(t, list[0].Gone, tc.gone)
			assert.Equal(t, len(got.Warnings()) == 1, tc.gone)
		})
	}
}

// withMine is an engine with the snapshot web:one, which was stored in the store mine.
func withMine(t *testing.T, id string) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	service := docker.Service
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: "mine", Labels: map[string]string{labels.KeyStoreID: id}})
	assert.NilError(t, err)
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
	assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
	web.Files = "one"
	docker.FindVolume("data").Content = "one"
	service.Home.Name = "mine"
	assert.Equal(t, snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"}).Store, "mine")
	service.Home.Name = volumebackup.DefaultStore
	web.Files = "two"
	docker.FindVolume("data").Content = "two"
	docker.Randomness = 100
	return docker
}

// Nobody has to remember which --store a snapshot was made with, with an ID or without.
func TestArchivesAreFoundByTheLabels(t *testing.T) {
	for name, use := range map[string]func(*testing.T, *enginetest.Docker){
		"copy": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			restore1(t, docker, runconfig.RestoreOptions{Snapshot: "one", Name: "copy"})
			assert.Equal(t, docker.FindVolume("data-000065").Content, "one")
		},
		"dry run": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			restore1(t, docker, runconfig.RestoreOptions{Snapshot: "one", DryRun: true})
		},
		"in place": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			replaced, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
			assert.NilError(t, err)
			assert.Equal(t, docker.Data(), "one")
			assert.Equal(t, replaced.Safety.Store, "mine")
		},
		"in place, dry run": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			o := replaceOptions()
			o.DryRun = true
			_, err := engineOf(docker).Replace(t.Context(), o, nil)
			assert.NilError(t, err)
		},
		"in place, interrupted": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			killedAt(t, docker, "apply data", 1)
			assert.Equal(t, docker.Data(), "half of one")
			recoverAll(t, docker)
			assert.Equal(t, docker.Data(), "two")
			assert.Equal(t, len(docker.Records), 0)
		},
		"in place, settled by the guard": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			killedAt(t, docker, "apply data", 1)
			assert.NilError(t, engineOf(docker).Settle(t.Context(), "web", nil))
			assert.Equal(t, docker.Data(), "two")
		},
		"files": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			e := engineOf(docker)
			s, err := e.Resolve(t.Context(), "one")
			assert.NilError(t, err)
			assert.NilError(t, e.archives.Entries(t.Context(), s, s.Mounts[0], archives.Listed, func(volumebackup.Entry) {}))
		},
		"removed": func(t *testing.T, docker *enginetest.Docker) {
			t.Helper()
			remove(t, docker, "one")
			assert.Equal(t, len(docker.Service.Archives), 0)
		},
	} {
		for _, id := range []string{"id", ""} {
			t.Run(name+" "+id, func(t *testing.T) { use(t, withMine(t, id)) })
		}
	}
}

// Another store of that name is treated as one that is gone. What the user says wins.
func TestAnotherStoreOfTheRecordedNameIsNotUsed(t *testing.T) {
	docker := withMine(t, "id")
	docker.FindVolume("mine").Labels[labels.KeyStoreID] = "another"
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "one"}, nil)
	none, ok := errors.AsType[*volumebackup.NoStoreError](err)
	assert.Assert(t, ok, "%v", err)
	s, err := engineOf(docker).Resolve(t.Context(), "one")
	assert.NilError(t, err)
	assert.DeepEqual(t, none, &volumebackup.NoStoreError{Store: "mine", Snapshot: string(s.ID), IsOther: true})

	docker.Service.Homes[string(s.ID)] = "given"
	docker.Service.Home.Name = "given"
	p := partsOf(docker)
	WithGivenStore()(&p)
	_, err = assemble(p).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "one"}, nil)
	assert.NilError(t, err)
}

// A name alone can be that of any volume, and a worker writes to its store: a snapshot
// from elsewhere is not believed.
func TestTheStoreOfAForeignSnapshotIsBelievedByItsIDOnly(t *testing.T) {
	for id, want := range map[string]string{"": volumebackup.DefaultStore, "id": "mine"} {
		docker := withMine(t, id)
		s, err := engineOf(docker).Resolve(t.Context(), "one")
		assert.NilError(t, err)
		s.Seal = ""
		found, err := engineOf(docker).archives.At(t.Context(), s)
		assert.NilError(t, err)
		assert.Equal(t, found.Store(), want)
	}
}

// Any create, rm and recover frees what has lost its image: create says that it is time,
// and recover looks into every store.
func TestEveryStoreIsSwept(t *testing.T) {
	docker := withMine(t, "id")
	docker.Service.SweepDue = true
	created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web", Name: "two"}, nil)
	assert.NilError(t, err)
	assert.Assert(t, created.SweepDue)
	assert.Equal(t, len(docker.Seen), 0) // the answer does not wait for it
	engineOf(docker).Sweep(t.Context(), nil)
	assert.Equal(t, len(docker.Seen), 1)
	assert.Equal(t, len(docker.Seen[0].Snapshots), 2)

	docker.Seen = nil
	recoverAll(t, docker)
	assert.Equal(t, len(docker.Seen), 2) // mine, and that of new snapshots

	docker.Refused = []string{"remove archives"}
	var got enginetest.Events
	_, err = engineOf(docker).Recover(t.Context(), "", got.Progress)
	assert.NilError(t, err)
	assert.Equal(t, len(got.Warnings()), 1)
}
