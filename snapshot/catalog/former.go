package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// A snapshot that is annotated becomes another image. The ID tag moves first, and that is the moment
// of the change. If the client is killed before the other tags have moved, they are still on the
// former image. They count as the snapshot's: whoever finds one looks up the ID tag.

// decodeHeld makes a snapshot of an image that has some tag of it. That may be a former image of the
// snapshot.
func (cat *Catalog) decodeHeld(ctx context.Context, found image.InspectResponse) (Snapshot, error) {
	s, err := decodeImage(found)
	if !errors.Is(err, labels.ErrAbsent) || found.Config == nil {
		return s, err
	}
	record, broken := labels.Decode(found.Config.Labels)
	if broken != nil {
		return Snapshot{}, err
	}
	now, missing := cat.docker.ImageInspect(ctx, TagOf(record.Container.Name, string(record.ID)).String())
	if cerrdefs.IsNotFound(missing) {
		return Snapshot{}, err
	}
	if missing != nil {
		return Snapshot{}, fmt.Errorf("inspect image of snapshot %s: %w", record.ID, missing)
	}
	s, broken = decodeImage(now)
	if broken != nil || !slices.Contains(s.Former, found.ID) {
		return Snapshot{}, err
	}
	s.takeFormer(map[string][]string{found.ID: found.RepoTags}, now.Config.Labels[labels.KeyName])
	return s, nil
}

// WithFormerTags adds to a snapshot the tags that its former images still have, so that they can be moved
// or removed with the others.
func (cat *Catalog) WithFormerTags(ctx context.Context, s Snapshot) (Snapshot, error) {
	s.Refs = slices.Clone(s.Refs)
	for _, id := range s.Former {
		found, err := cat.docker.ImageInspect(ctx, id)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Snapshot{}, fmt.Errorf("inspect former image of snapshot %s: %w", s.ID, err)
		}
		s.takeFormer(map[string][]string{id: found.RepoTags}, "")
	}
	s.Refs = slices.Compact(s.Refs)
	return s, nil
}

// takeFormer adds the tags that former images of the snapshot still have. The name that its labels say
// may be one of them.
func (s *Snapshot) takeFormer(tags map[string][]string, name string) {
	added := false
	for _, id := range s.Former {
		for _, ref := range tags[id] {
			if strings.HasPrefix(ref, Repository(s.Container.Name)+":") {
				s.Refs, added = append(s.Refs, ref), true
			}
		}
	}
	if !added {
		return
	}
	slices.Sort(s.Refs)
	if name != "" && s.hasTag(name) {
		s.Name, s.LostName = name, ""
	}
}

// Change makes the snapshot now of what the snapshot before was: another image, of the same ID. From
// the moment when the ID tag has moved it is the new one. All other tags move as well; a name that has
// changed is taken as a new snapshot takes one. It fails with [ErrChanged] if before is not what the
// engine has any more. Steps that roll this back go to rollback.
func (cat *Catalog) Change(ctx context.Context, before Snapshot, now *Snapshot, rollback *dockerop.Rollback) error {
	held, err := cat.Holder(ctx, ParseTag(before.Ref()))
	if err != nil {
		return err
	}
	if held.imageID != before.ImageID {
		return ErrChanged
	}
	if before, err = cat.WithFormerTags(ctx, before); err != nil {
		return err
	}
	move := func(ref string) error {
		rollback.Add(func(ctx context.Context) error { return cat.docker.Retag(ctx, ref, before.ImageID) })
		if err := cat.docker.Tag(ctx, now.ImageID, ref); err != nil {
			return fmt.Errorf("tag image %s: %w", ref, err)
		}
		now.Refs = append(now.Refs, ref)
		return nil
	}
	if err := move(before.Ref()); err != nil {
		return err
	}
	former := ""
	if now.Name != before.Name {
		if err := cat.rename(ctx, now, rollback); err != nil {
			return err
		}
		former = TagOf(before.Container.Name, before.Name).String()
	}
	for _, ref := range before.Refs {
		if ref == before.Ref() || ref == former {
			continue
		}
		if err := move(ref); err != nil {
			return err
		}
	}
	slices.Sort(now.Refs)
	if before.Name == "" || former == "" {
		return nil
	}
	rollback.Add(func(ctx context.Context) error { return cat.docker.Retag(ctx, former, before.ImageID) })
	if err := cat.docker.RemoveImage(ctx, former); err != nil {
		return fmt.Errorf("remove tag %s: %w", former, err)
	}
	return nil
}

// ErrChanged means that a snapshot is not any more what it was when it was looked up.
var ErrChanged = errors.New("somebody else has changed or removed the snapshot")

// rename takes the name of a snapshot that has its ID tag, if it has a name.
func (cat *Catalog) rename(ctx context.Context, s *Snapshot, rollback *dockerop.Rollback) error {
	if s.Name == "" {
		return nil
	}
	name := naming{catalog: cat, snapshot: *s, name: TagOf(s.Container.Name, s.Name)}
	if err := name.take(ctx, rollback); err != nil {
		return err
	}
	s.Refs = append(s.Refs, name.name.String())
	return nil
}
