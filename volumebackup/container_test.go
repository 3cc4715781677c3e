package volumebackup

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"
)

// testStore is a store that nobody opens.
var testStore = &storeVolume{StoreRef: StoreRef{Name: "s"}}

// A worker that holds no lock and has no journal goes by itself, whatever becomes of its client.
func TestWhoHoldsNothingGoesByItself(t *testing.T) {
	for _, tc := range []struct {
		j    job
		goes bool
	}{{job{store: testStore, purpose: "list"}, true}, {job{store: testStore, name: "lock"}, false}, {job{store: testStore, journal: map[string]string{"made": "v"}}, false}} {
		_, host, err := (&containerLauncher{}).configure("image", tc.j)
		assert.NilError(t, err)
		assert.Equal(t, host.AutoRemove, tc.goes)
	}
}

func TestJournalNamesWhatIsFrozen(t *testing.T) {
	config, host, err := (&containerLauncher{plugin: "v1"}).configure("image", job{
		store:   testStore,
		purpose: "create", frozen: []string{"a", "b"}, mounts: []Mount{{Number: 3, Volume: "v", ReadOnly: true}},
	})
	assert.NilError(t, err)
	frozen, err := FrozenBy(config.Labels)
	assert.NilError(t, err)
	assert.DeepEqual(t, frozen, []string{"a", "b"})
	assert.Assert(t, host.ReadonlyRootfs)
	assert.Equal(t, string(host.NetworkMode), "none")
	at := slices.IndexFunc(host.Mounts, func(m mount.Mount) bool { return m.Target == "/mnt/3" })
	assert.Assert(t, at >= 0 && host.Mounts[at].ReadOnly && host.Mounts[at].Source == "v")
	for _, m := range host.Mounts {
		assert.Equal(t, string(m.Type), "volume", "nothing of a host is mounted")
	}
}
