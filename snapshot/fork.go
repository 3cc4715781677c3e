package snapshot

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
)

// Fork makes several copies at once: of a snapshot or, if the word names a container, of a snapshot
// that it takes of that first. It makes all or none; if it fails, that snapshot is removed, too, and
// otherwise it stays.
func (e *Engine) Fork(ctx context.Context, o copies.ForkOptions, p plan.Progress) (made []build.Restored, err error) {
	c, err := e.docker.InspectIfThere(ctx, o.Snapshot)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return e.copies.Fork(ctx, o, p)
	}
	created, err := e.Create(ctx, capture.Options{Container: o.Snapshot}, p)
	if err != nil {
		return nil, err
	}
	o.Snapshot = string(created.ID)
	if made, err = e.copies.Fork(ctx, o, p); err != nil {
		after, cancel := dockerop.Cleanup(ctx)
		defer cancel()
		return nil, errors.Join(err, e.Remove(after, []string{o.Snapshot}, removal.Options{Force: true}, p)[0].Err)
	}
	for i := range made {
		made[i].Incomplete = made[i].Incomplete || created.Incomplete
	}
	return made, nil
}
