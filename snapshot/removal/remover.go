package removal

import (
	"context"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
)

// Remover removes snapshots, and what nobody needs any more. It keeps no state and may be used by
// several goroutines.
type Remover struct {
	docker   *dockerop.Engine
	catalog  *catalog.Catalog
	archives *archives.Archives
	pending  *pending.Finder
	scale    *space.Scale
	volumes  archives.Service
	now      func() time.Time
}

// Rooms are what a remover needs. Volumes works with the store of new snapshots.
type Rooms struct {
	Docker   *dockerop.Engine
	Catalog  *catalog.Catalog
	Archives *archives.Archives
	Pending  *pending.Finder
	Scale    *space.Scale
	Volumes  archives.Service
	Now      func() time.Time
}

// New returns a remover for an engine.
func New(r Rooms) *Remover {
	return &Remover{docker: r.Docker, catalog: r.Catalog, archives: r.Archives, pending: r.Pending, scale: r.Scale, volumes: r.Volumes, now: r.Now}
}

// earliest returns the time on this machine or on the engine's, whichever is earlier: if one of their clocks is ahead, nothing
// expires for that.
func (rm *Remover) earliest(ctx context.Context) (time.Time, error) {
	there, err := rm.docker.Time(ctx)
	if here := rm.now(); err != nil || here.Before(there) {
		return here, err
	}
	return there, nil
}
