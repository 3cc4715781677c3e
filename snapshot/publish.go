package snapshot

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// publish tags the image. The ID tag comes first: from then on it is a snapshot.
func (e *Engine) publish(ctx context.Context, s *Snapshot, from source, u *dockerop.Undo) error {
	if !slices.Contains(s.Refs, s.Ref()) { // the commit has not set it
		u.Add(func(ctx context.Context) error { return e.docker.RemoveImage(ctx, s.Ref()) })
		if err := e.docker.Tag(ctx, s.ImageID, s.Ref()); err != nil {
			return fmt.Errorf("tag image %s: %w", s.Ref(), err)
		}
		s.Refs = append(s.Refs, s.Ref())
	}
	name := naming{engine: e, snapshot: *s, name: tagged{Repository(s.Container.Name), s.Name}, before: from.named}
	if s.Name != "" {
		if err := name.take(ctx, u); err != nil {
			return err
		}
	}
	latest := latestOf(s.Container.Name)
	u.Add(func(ctx context.Context) error { return e.giveBackLatest(ctx, *s, from.latest) })
	calls, callsCtx := errgroup.WithContext(ctx)
	if s.Name != "" {
		calls.Go(func() error { return name.keep(callsCtx) })
	}
	var holder Snapshot
	calls.Go(func() (err error) {
		holder, err = e.giveLatest(callsCtx, *s, nil)
		return err
	})
	if err := calls.Wait(); err != nil {
		return err
	}
	if holder.ID == s.ID {
		s.Refs = append(s.Refs, latest)
	}
	if s.Name != "" {
		s.Refs = append(s.Refs, name.name.String())
	}
	slices.Sort(s.Refs)
	return nil
}

// giveBackLatest takes the tag latest from a snapshot that there will not be.
func (e *Engine) giveBackLatest(ctx context.Context, s Snapshot, before holder) error {
	passed, err := e.passLatest(ctx, s, idSet{s.ID: true})
	if err != nil || passed {
		return err
	}
	return e.docker.Retag(ctx, latestOf(s.Container.Name), before.imageID)
}

// retire removes the snapshot whose name the new one has taken over. The new
// one is whole by now: that the old one stays is worth a warning, not a failure.
func (e *Engine) retire(ctx context.Context, old *Snapshot, engine dockerop.Info, p plan.Progress) {
	if old == nil {
		return
	}
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	err := e.docker.RemoveImage(ctx, old.Ref())
	if err == nil {
		err = e.removeArchives(ctx, []Snapshot{*old}, &engine, p)[old.ID]
	}
	if err != nil {
		p.Warn("tag", fmt.Sprintf("the replaced snapshot %s could not be removed: %v", old.ID, err))
	}
}
