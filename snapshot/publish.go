package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// publish tags the image. The ID tag comes first: from then on it is a snapshot.
func (e *Engine) publish(ctx context.Context, s *Snapshot, from source, u *undo) error {
	repository := Repository(s.Container.Name)
	type move struct{ tag, from string }
	name := &move{s.Name, from.named.imageID}
	moves := []*move{{tag: string(s.ID)}, {labels.Latest, from.latest.imageID}}
	if s.Name != "" {
		moves = append(moves, name)
	}
	for _, m := range moves {
		ref := tagged{repository, m.tag}.String()
		if slices.Contains(s.Refs, ref) {
			continue // the commit has set it
		}
		u.add(func(ctx context.Context) error { return e.retag(ctx, ref, m.from) })
		if err := e.tag(ctx, s.ImageID, ref); err != nil {
			return fmt.Errorf("tag image %s: %w", ref, err)
		}
		s.Refs = append(s.Refs, ref)
	}
	if s.Name == "" {
		return nil
	}
	other, err := e.findNamesake(ctx, *s, from.named.snapshot)
	if err != nil || other == nil {
		return err
	}
	name.from = other.ImageID
	return &NameTakenError{Ref: s.word(s.Name), Reuse: true}
}

// namesakeGrace is how long the earlier of two snapshots of the same name waits
// for the other to give way.
const namesakeGrace = 3 * time.Second

// findNamesake finds another snapshot that was given the same name meanwhile. Of
// two that are made at once each looks after it has its tags, so at least one sees
// the other and gives way. If both do, it is the later one: the earlier one waits
// for that, and only gives way itself if the other stays.
func (e *Engine) findNamesake(ctx context.Context, s Snapshot, replaced *Snapshot) (*Snapshot, error) {
	isNamesake := func(other Snapshot) bool {
		return other.Name == s.Name && other.Container.Name == s.Container.Name && other.ID != s.ID && (replaced == nil || other.ID != replaced.ID)
	}
	patience := e.now().Add(namesakeGrace)
	var found *Snapshot
	err := poll(ctx, func() (bool, error) {
		all, err := e.list(ctx, Repository(s.Container.Name), nil)
		at := slices.IndexFunc(all, isNamesake)
		if err != nil || at < 0 {
			found = nil
			return true, err
		}
		found = &all[at]
		return found.ID < s.ID || e.now().After(patience), nil
	})
	return found, err
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
func (e *Engine) retire(ctx context.Context, old *Snapshot, engine engineInfo, p Progress) {
	if old == nil {
		return
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	err := e.removeImage(ctx, old.Ref())
	if err == nil {
		err = e.removeArchives(ctx, *old, &engine, p)
	}
	if err != nil {
		p.warn("tag", fmt.Sprintf("the replaced snapshot %s could not be removed: %v", old.ID, err))
	}
}
