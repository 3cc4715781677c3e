package enginetest

import (
	"context"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// awaitUnstuck waits until the engine is not stuck with a container any more.
func (f *Docker) awaitUnstuck(ctx context.Context, word string) error {
	f.Mu.Lock()
	var stuck chan struct{}
	if c := f.FindContainer(word); c != nil {
		stuck = c.stuck
	}
	f.Mu.Unlock()
	if stuck == nil {
		return nil
	}
	select {
	case <-stuck:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// OpenFreezer returns what thaws the processes of the engine's containers.
func (v *FakeVolumes) OpenFreezer(ctx context.Context) (dockerop.Freezer, error) {
	return fakeFreezer{v.docker}, v.docker.do(ctx, "open freezer", func() error { return nil })
}

type fakeFreezer struct{ docker *Docker }

// Set thaws or freezes the processes of a container, and does not tell the engine.
func (f fakeFreezer) Set(ctx context.Context, container string, frozen bool) error {
	return f.docker.do(ctx, fmt.Sprintf("freeze %v", frozen), func() error {
		c := f.docker.FindContainer(container)
		if c == nil {
			return cerrdefs.ErrNotFound
		}
		c.past = !frozen && c.State == "paused"
		if !frozen && c.stuck != nil {
			close(c.stuck)
			c.stuck, c.Begins = nil, false // the command has begun
		}
		return nil
	})
}

func (fakeFreezer) Close() error { return nil }
