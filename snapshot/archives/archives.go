package archives

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Archives finds, reads and frees what stores hold for snapshots. It keeps no state and may be used
// by several goroutines.
type Archives struct {
	docker  *dockerop.Engine
	catalog *catalog.Catalog
	volumes Service // with the store of new snapshots
	given   bool    // the user has named the store, whatever a snapshot's labels say
}

// New returns the archives of an engine. isGiven says that the user has named the store of volumes,
// so that all snapshots are looked up there.
func New(docker *dockerop.Engine, snapshots *catalog.Catalog, volumes Service, isGiven bool) *Archives {
	return &Archives{docker: docker, catalog: snapshots, volumes: volumes, given: isGiven}
}
