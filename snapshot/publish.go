package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
)

// publish tags the image. The ID tag comes first: from then on it is a snapshot.
func (e *Engine) publish(ctx context.Context, s *Snapshot, from source, u *undo) error {
	if !slices.Contains(s.Refs, s.Ref()) { // the commit has not set it
		u.add(func(ctx context.Context) error { return e.removeImage(ctx, s.Ref()) })
		if err := e.tag(ctx, s.ImageID, s.Ref()); err != nil {
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
	u.add(func(ctx context.Context) error { return e.giveBackLatest(ctx, *s, from.latest) })
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
	return e.retag(ctx, latestOf(s.Container.Name), before.imageID)
}

// How often a tag is set before its failure counts, and how long it is waited in
// between.
const (
	tagTries = 20
	tagPause = 10 * time.Millisecond
)

// tag makes ref point at an image. An engine with the containerd image store moves
// a tag in two steps; if somebody else moves the same one in between, it fails, and
// says so as an internal error.
func (e *Engine) tag(ctx context.Context, imageID, ref string) error {
	for n := 1; ; n++ {
		err := e.docker.ImageTag(ctx, imageID, ref)
		if err == nil || n == tagTries || !strings.Contains(err.Error(), "already exists") {
			return err
		}
		select {
		case <-time.After(tagPause):
		case <-ctx.Done():
			return err
		}
	}
}

// retag makes ref point at an image again, or at none. An image that is gone is
// left to rest.
func (e *Engine) retag(ctx context.Context, ref, imageID string) error {
	if imageID == "" {
		return e.removeImage(ctx, ref)
	}
	if err := e.tag(ctx, imageID, ref); !cerrdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// retire removes the snapshot whose name the new one has taken over. The new
// one is whole by now: that the old one stays is worth a warning, not a failure.
func (e *Engine) retire(ctx context.Context, old *Snapshot, engine engineInfo, p plan.Progress) {
	if old == nil {
		return
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	err := e.removeImage(ctx, old.Ref())
	if err == nil {
		err = e.removeArchives(ctx, []Snapshot{*old}, &engine, p)[old.ID]
	}
	if err != nil {
		p.Warn("tag", fmt.Sprintf("the replaced snapshot %s could not be removed: %v", old.ID, err))
	}
}
