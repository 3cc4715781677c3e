package dockerop

import (
	"context"
)

// Guard watches over what must not outlive this process: if it dies without
// calling release, that is put right all the same. It returns once the watching
// has begun.
type Guard func(ctx context.Context, w Watched) (release func(), err error)

// Watched is what a [Guard] has to put right: one of these.
type Watched struct {
	Frozen   []string // IDs of containers, which are thawed
	Replaced string   // name of a container whose restore in place is taken back
}
