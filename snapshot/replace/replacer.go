package replace

import (
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
)

// Replacer restores snapshots in place. It keeps no state and may be used by several
// goroutines.
type Replacer struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	pending  *pending.Finder
	build    *build.Builder
	capture  *capture.Capturer
	removal  *removal.Remover
	volumes  archives.Service
	guard    dockerop.Guard
	now      func() time.Time
}

// Rooms are what a [Replacer] builds on.
type Rooms struct {
	Docker   *dockerop.Engine
	Catalog  *catalog.Catalog
	Archives *archives.Archives
	Pending  *pending.Finder
	Build    *build.Builder
	Capture  *capture.Capturer
	Removal  *removal.Remover
	Volumes  archives.Service // in the store of new snapshots
	Guard    dockerop.Guard   // rolls back should this process be killed
	Now      func() time.Time
}

// New returns a replacer.
func New(r Rooms) *Replacer {
	return &Replacer{
		docker: r.Docker, catalog: r.Catalog, archives: r.Archives, pending: r.Pending, build: r.Build,
		capture: r.Capture, removal: r.Removal, volumes: r.Volumes, guard: r.Guard, now: r.Now,
	}
}
