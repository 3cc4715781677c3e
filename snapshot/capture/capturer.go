package capture

import (
	"io"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// Capturer takes snapshots. It keeps no state and may be used by several goroutines.
type Capturer struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	pending  *pending.Finder
	volumes  archives.Service
	guard    dockerop.Guard
	now      func() time.Time
	random   io.Reader
}

// Rooms are what a [Capturer] builds on.
type Rooms struct {
	Docker   *dockerop.Engine
	Catalog  *catalog.Catalog
	Archives *archives.Archives
	Pending  *pending.Finder
	Volumes  archives.Service // in the store that archives come into
	Guard    dockerop.Guard   // watches over frozen containers
	Now      func() time.Time
	Random   io.Reader
}

// New returns a capturer.
func New(r Rooms) *Capturer {
	return &Capturer{docker: r.Docker, catalog: r.Catalog, archives: r.Archives, pending: r.Pending, volumes: r.Volumes, guard: r.Guard, now: r.Now, random: r.Random}
}

// InStore is the same with archives that come into another store.
func (cr *Capturer) InStore(volumes archives.Service) *Capturer {
	other := *cr
	other.volumes = volumes
	return &other
}
