package snapshot

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// engineOf is the code under test on top of the fake, with a clock that moves a
// second at each look and random numbers that count.
func engineOf(docker *enginetest.Docker) *Engine { return assemble(partsOf(docker)) }

// partsOf are the parts of [engineOf], to be changed.
func partsOf(docker *enginetest.Docker) parts {
	return parts{
		docker: docker, volumes: docker.Service, guard: enginetest.NoGuard, now: docker.Tick,
		random: &enginetest.Counter{Last: docker.Randomness},
	}
}

// engineThrough is the same, with something between it and the fake.
func engineThrough(docker *enginetest.Docker, through dockerop.Docker) *Engine {
	p := partsOf(docker)
	p.docker = through
	return assemble(p)
}

// engineUsing is the same with other volumes.
func engineUsing(docker *enginetest.Docker, volumes archives.Service) *Engine {
	p := partsOf(docker)
	p.volumes = volumes
	return assemble(p)
}

// engineCounting is the same with random numbers that begin elsewhere.
func engineCounting(docker *enginetest.Docker, last byte) *Engine {
	p := partsOf(docker)
	p.random = &enginetest.Counter{Last: last}
	return assemble(p)
}

// engineWatchedBy is the same with a guard.
func engineWatchedBy(docker *enginetest.Docker, guard dockerop.Guard) *Engine {
	p := partsOf(docker)
	p.guard = guard
	return assemble(p)
}
