package copies

import (
	"io"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// Copier restores snapshots as new containers. It keeps no state and may be used by several
// goroutines.
type Copier struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	pending  *pending.Finder
	build    *build.Builder
	volumes  archives.Service
	now      func() time.Time
	random   io.Reader
}

// Rooms are what a [Copier] builds on.
type Rooms struct {
	Docker   *dockerop.Engine
	Catalog  *catalog.Catalog
	Archives *archives.Archives
	Pending  *pending.Finder
	Build    *build.Builder
	Volumes  archives.Service // with the store of new snapshots
	Now      func() time.Time
	Random   io.Reader
}

// New returns a copier.
func New(r Rooms) *Copier {
	return &Copier{docker: r.Docker, catalog: r.Catalog, archives: r.Archives, pending: r.Pending, build: r.Build, volumes: r.Volumes, now: r.Now, random: r.Random}
}
