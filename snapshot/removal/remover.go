package removal

import (
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
)

// Remover removes snapshots, and what nobody needs any more. It keeps no state and may be used by
// several goroutines.
type Remover struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	pending  *pending.Finder
	volumes  archives.Service
	now      func() time.Time
}

// New returns a remover for an engine. volumes works with the store of new snapshots.
func New(docker *dockerop.Engine, snapshots *catalog.Catalog, held *archives.Archives, workers *pending.Finder, volumes archives.Service, now func() time.Time) *Remover {
	return &Remover{docker: docker, catalog: snapshots, archives: held, pending: workers, volumes: volumes, now: now}
}
