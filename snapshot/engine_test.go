package snapshot

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
)

// engineOf is the code under test on top of the fake, with a clock that moves a
// second at each look and random numbers that count.
func engineOf(docker *enginetest.Docker) *Engine { return engineThrough(docker, docker) }

// engineThrough is the same, with something between it and the fake.
func engineThrough(f *enginetest.Docker, docker dockerop.Docker) *Engine {
	e := newEngine(docker, f.Tick, &enginetest.Counter{Last: f.Randomness})
	if f.Service != nil {
		e.use(f.Service)
	}
	return e
}
