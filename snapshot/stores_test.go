package snapshot

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// A snapshot whose store is gone, or is another one of that name, is marked, and that is said.
func TestListMarksSnapshotsWhoseStoreIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fakeDocker, *fakeVolume)
		gone   bool
	}{
		"there": {func(*fakeDocker, *fakeVolume) {}, false},
		"removed": {func(f *fakeDocker, v *fakeVolume) {
			f.volumes = slices.DeleteFunc(f.volumes, func(one *fakeVolume) bool { return one == v })
		}, true},
		"made anew":      {func(_ *fakeDocker, v *fakeVolume) { v.labels[labels.KeyStoreID] = "another" }, true},
		"made by a user": {func(_ *fakeDocker, v *fakeVolume) { v.labels = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			docker := newFakeDocker()
			service := docker.withVolumes()
			_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: service.Store(), Labels: map[string]string{labels.KeyStoreID: "one"}})
			assert.NilError(t, err)
			docker.create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
			created := snapshotOf(t, docker, CreateOptions{Container: "web"})
			assert.Equal(t, created.Store, service.Store())
			assert.Equal(t, created.StoreID, "one")
			tc.change(docker, docker.findVolume(service.Store()))

			var got events
			list, err := docker.engine().List(t.Context(), ListOptions{}, got.progress)
			assert.NilError(t, err)
			assert.Assert(t, is.Len(list, 1))
			assert.Equal(t, list[0].Gone, tc.gone)
			assert.Equal(t, len(got.warnings()) == 1, tc.gone)
		})
	}
}
