package dockerop

import "context"

// Guard starts a second process that puts w right if this process dies before it calls release. It
// returns once that process is watching.
type Guard func(ctx context.Context, w Watched) (release func(), err error)

// Watched is what a [Guard] has to put right. One of the fields is set.
type Watched struct {
	Frozen   []string // IDs of containers to thaw
	Replaced string   // name of a container whose restore in place is to be recovered
	Hook     *Exec    // the post hook of a snapshot; its command may be empty: then only what has its mark is ended
}
