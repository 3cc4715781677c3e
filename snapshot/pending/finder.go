package pending

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Finder finds workers and what they are doing. It keeps no state and may be used by several
// goroutines.
type Finder struct {
	docker  *dockerop.Engine
	volumes archives.Service
}

// New returns a finder for the workers of volumes on an engine.
func New(docker *dockerop.Engine, volumes archives.Service) *Finder {
	return &Finder{docker: docker, volumes: volumes}
}
