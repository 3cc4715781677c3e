package build

import (
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// Builder observes what a restore depends on, makes containers, and restores their volumes. It
// keeps no state and may be used by several goroutines.
type Builder struct {
	docker  *dockerop.Engine
	catalog *catalog.Catalog
	pending *pending.Finder
	volumes archives.Service
	now     func() time.Time
}

// New returns a builder for an engine. volumes works with the store that is restored from.
func New(docker *dockerop.Engine, snapshots *catalog.Catalog, workers *pending.Finder, volumes archives.Service, now func() time.Time) *Builder {
	return &Builder{docker: docker, catalog: snapshots, pending: workers, volumes: volumes, now: now}
}

// InStore returns a builder that restores from another store.
func (b *Builder) InStore(volumes archives.Service) *Builder {
	other := *b
	other.volumes = volumes
	return &other
}
