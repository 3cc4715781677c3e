package capture

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Pause says which containers are frozen while a snapshot is taken.
type Pause string

// The choices.
const (
	PauseAll    Pause = "all"    // the container, and every other that can write to its volumes
	PauseTarget Pause = "target" // only the container
	PauseNone   Pause = "none"   // none: what is captured may be torn
)

// frozen is a set of containers that were paused together.
type frozen struct {
	engine  *Capturer
	ids     []string
	since   time.Time
	lasted  time.Duration
	release func()
	once    sync.Once
	early   bool // somebody else had thawed one of them by the time of thaw
	err     error
}

// freeze pauses containers concurrently. The caller must thaw what it returns, also after an
// error.
func (cr *Capturer) freeze(ctx context.Context, ids []string) (*frozen, error) {
	f := &frozen{engine: cr, release: func() {}}
	if len(ids) == 0 {
		return f, nil
	}
	mounts := dockerop.OwnMounts()
	for _, id := range ids {
		if dockerop.RunsIn(mounts, id) {
			return f, &dockerop.SelfError{Container: dockerop.Shorten(id)}
		}
	}
	release, err := cr.guard(ctx, dockerop.Watched{Frozen: ids})
	if err != nil {
		return f, fmt.Errorf("start the guard: %w", err)
	}
	f.release = release
	f.since = cr.now()
	var mu sync.Mutex
	// Not cancelled midway: whether a cancelled call has paused is not known.
	detached := context.WithoutCancel(ctx)
	var calls errgroup.Group
	for _, id := range ids {
		calls.Go(func() error {
			ours, err := cr.docker.Pause(detached, id)
			if ours {
				mu.Lock()
				defer mu.Unlock()
				f.ids = append(f.ids, id)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return f, err
	}
	return f, ctx.Err()
}

// thaw lets the containers run again; it works after Ctrl-C, too. Only the first
// call does anything.
func (f *frozen) thaw(ctx context.Context) error {
	f.once.Do(func() {
		f.early, f.err = f.engine.docker.ThawOwn(context.WithoutCancel(ctx), f.ids)
		if len(f.ids) > 0 {
			f.lasted = f.engine.now().Sub(f.since)
		}
		if f.err == nil {
			f.release()
		}
	})
	return f.err
}
