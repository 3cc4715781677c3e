package replace

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
)

// replacerOf is the code under test on top of the fake.
func replacerOf(docker *enginetest.Docker) *Replacer { return replacerThrough(docker, docker) }

// replacerThrough is the same, with something between it and the fake.
func replacerThrough(fake *enginetest.Docker, through dockerop.Docker) *Replacer {
	docker, random := dockerop.New(through, fake.Service.OpenFreezer), &enginetest.Counter{Last: fake.Randomness}
	snapshots, volumes := catalog.New(docker, fake.Tick, random), archives.Service(fake.Service)
	workers, held := pending.New(docker, volumes), archives.New(docker, snapshots, volumes, false)
	return New(Rooms{
		Docker: docker, Catalog: snapshots, Archives: held, Pending: workers, Volumes: volumes, Guard: enginetest.NoGuard, Now: fake.Tick,
		Build: build.New(docker, snapshots, workers, volumes, fake.Tick),
		Removal: removal.New(removal.Rooms{
			Docker: docker, Catalog: snapshots, Archives: held, Pending: workers, Scale: space.New(docker, held), Volumes: volumes, Now: fake.Tick,
		}),
		Capture: capture.New(capture.Rooms{
			Docker: docker, Catalog: snapshots, Archives: held, Pending: workers, Volumes: volumes, Guard: enginetest.NoGuard, Now: fake.Tick, Random: random,
		}),
	})
}

// snapshotOf takes a snapshot.
func snapshotOf(t *testing.T, docker *enginetest.Docker, o capture.Options) catalog.Snapshot {
	t.Helper()
	capturer := replacerOf(docker).capture
	request, err := capturer.NewRequest(1)
	assert.NilError(t, err)
	created, err := capturer.TakeWithin(t.Context(), request, []capture.Options{o}, nil)
	assert.NilError(t, err)
	return created[0].Snapshot
}

// rollBack rolls a restore in place back, as the transaction that failed does.
func rollBack(t *testing.T, docker *enginetest.Docker, j pending.Journal) (string, error) {
	t.Helper()
	b := replacerOf(docker).rollBackLater(j, nil)
	b.when = atOnce
	return b.run(t.Context())
}
