package snapshot

import "github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"

// engineOf is the code under test on top of the fake, with a clock that moves a
// second at each look and random numbers that count.
func engineOf(docker *fakeDocker) *Engine { return engineThrough(docker, docker) }

// engineThrough is the same, with something between it and the fake.
func engineThrough(f *fakeDocker, docker dockerop.Docker) *Engine {
	e := newEngine(docker, f.tick, &counter{last: f.randomness})
	if f.service != nil {
		e.use(f.service)
	}
	return e
}
