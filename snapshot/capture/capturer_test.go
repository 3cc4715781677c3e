package capture

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// capturerOf is the code under test on top of the fake.
func capturerOf(docker *enginetest.Docker) *Capturer {
	return capturerWatchedBy(docker, enginetest.NoGuard)
}

// capturerWatchedBy is the same with a guard.
func capturerWatchedBy(fake *enginetest.Docker, guard dockerop.Guard) *Capturer {
	docker, random, volumes := dockerop.New(fake, fake.Service.OpenFreezer), &enginetest.Counter{Last: fake.Randomness}, archives.Service(fake.Service)
	snapshots := catalog.New(docker, fake.Tick, random)
	return New(Rooms{
		Docker: docker, Catalog: snapshots, Archives: archives.New(docker, snapshots, volumes, false),
		Pending: pending.New(docker, volumes), Volumes: volumes, Guard: guard, Now: fake.Tick, Random: random,
	})
}
