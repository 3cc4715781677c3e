package catalog

import (
	"context"
	"fmt"
	"slices"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// Publish tags the image of s with its ID, which makes it a snapshot, then with its name, and with
// latest if it is the newest. latestBefore and named had these tags before. Steps that roll this
// back go to rollback.
func (cat *Catalog) Publish(ctx context.Context, s *Snapshot, latestBefore, named Holder, rollback *dockerop.Rollback) error {
	if !slices.Contains(s.Refs, s.Ref()) { // the commit may have set it already
		rollback.Add(func(ctx context.Context) error { return cat.docker.RemoveImage(ctx, s.Ref()) })
		if err := cat.docker.Tag(ctx, s.ImageID, s.Ref()); err != nil {
			return fmt.Errorf("tag image %s: %w", s.Ref(), err)
		}
		s.Refs = append(s.Refs, s.Ref())
	}
	name := naming{catalog: cat, snapshot: *s, name: TagOf(s.Container.Name, s.Name), before: named}
	if s.Name != "" {
		if err := name.take(ctx, rollback); err != nil {
			return err
		}
	}
	latest := LatestOf(s.Container.Name)
	rollback.Add(func(ctx context.Context) error { return cat.giveBackLatest(ctx, *s, latestBefore) })
	holder, err := cat.giveLatest(ctx, *s, nil)
	if err != nil {
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

// giveBackLatest takes the tag latest from a snapshot that is rolled back.
func (cat *Catalog) giveBackLatest(ctx context.Context, s Snapshot, before Holder) error {
	passed, err := cat.HandOverLatest(ctx, s, IDSet{s.ID: true})
	if err != nil || passed {
		return err
	}
	return cat.docker.Retag(ctx, LatestOf(s.Container.Name), before.imageID)
}

// Holder is the image that has a tag now.
type Holder struct {
	imageID  string    // empty: no image has it
	Snapshot *Snapshot // nil: the image is no snapshot in the tag's repository
}

// ObserveName returns the image that has the name now. It fails with [NameTakenError] if there is
// one and reuse is false, or if it is no snapshot, and with [PinnedError] if it is pinned.
func (cat *Catalog) ObserveName(ctx context.Context, ref Tag, container string, reuse bool) (Holder, error) {
	h, err := cat.Holder(ctx, ref)
	switch {
	case err != nil:
		return Holder{}, err
	case h.imageID == "":
		return h, nil
	}
	isSnapshot := h.Snapshot != nil
	switch {
	case !reuse, !isSnapshot:
		return Holder{}, &NameTakenError{Ref: container + ":" + ref.tag, Tag: ref.String(), Reuse: isSnapshot}
	case h.Snapshot.Pinned:
		return Holder{}, &PinnedError{ID: h.Snapshot.ID, Name: h.Snapshot.Name, Replaced: true}
	}
	return h, nil
}

// Holder returns the image that has a tag now.
func (cat *Catalog) Holder(ctx context.Context, ref Tag) (Holder, error) {
	found, err := cat.docker.ImageInspect(ctx, ref.String())
	if cerrdefs.IsNotFound(err) {
		return Holder{}, nil
	}
	if err != nil {
		return Holder{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	h := Holder{imageID: found.ID}
	if s, err := cat.decodeHeld(ctx, found); err == nil && slices.Contains(s.Refs, ref.String()) {
		h.Snapshot, h.imageID = &s, s.ImageID
	}
	return h, nil
}
