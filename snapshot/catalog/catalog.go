package catalog

import (
	"io"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Catalog finds the snapshots that an engine has, and moves their tags. It keeps no state and may
// be used by several goroutines.
type Catalog struct {
	docker *dockerop.Engine
	now    func() time.Time
	random io.Reader
}

// New returns the catalog of an engine. It reads the time from now, and a new engine key from
// random.
func New(docker *dockerop.Engine, now func() time.Time, random io.Reader) *Catalog {
	return &Catalog{docker: docker, now: now, random: random}
}
