package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Annotation says what to change in what is known about a snapshot. What is nil or empty stays.
type Annotation struct {
	Snapshot    string  // a reference in any form that [catalog.Catalog.Resolve] takes
	Name        *string // empty: none any more
	Description *string
	Tag, Untag  []string
	Meta        map[string]string
	Unmeta      []string
	Pinned      *bool
	Expires     *time.Time // zero: never
	usageLow    *float64
}

// Check refuses annotations that no snapshot can have.
func (a Annotation) Check() error {
	if a.Name != nil && *a.Name != "" {
		if err := labels.CheckName(*a.Name); err != nil {
			return err
		}
	}
	return Options{Container: a.Snapshot, Meta: a.Meta}.Check()
}

// apply changes a record.
func (a Annotation) apply(r *labels.Record) {
	if a.Name != nil {
		r.Name = *a.Name
	}
	if a.Description != nil {
		r.Description = *a.Description
	}
	r.Tags = slices.DeleteFunc(slices.Clone(r.Tags), func(tag string) bool { return slices.Contains(a.Untag, tag) })
	for _, tag := range a.Tag {
		if !slices.Contains(r.Tags, tag) {
			r.Tags = append(r.Tags, tag)
		}
	}
	if len(r.Tags) == 0 {
		r.Tags = nil
	}
	meta := map[string]string{}
	maps.Copy(meta, r.Meta)
	maps.DeleteFunc(meta, func(key, _ string) bool { return slices.Contains(a.Unmeta, key) })
	maps.Copy(meta, a.Meta)
	if r.Meta = meta; len(meta) == 0 {
		r.Meta = nil
	}
	if a.Pinned != nil {
		r.Pinned = *a.Pinned
	}
	if a.usageLow != nil {
		r.UsageLow = a.usageLow
	}
	if a.Expires != nil {
		r.Expires = *a.Expires
	}
}

// annotateAttempts is how often Annotate begins again because somebody else changes the snapshot, too.
const annotateAttempts = 5

// Annotate changes what is known about a snapshot. The snapshot becomes another image with the same
// layers and the same ID. At any moment it is either what it was or what it becomes, whole.
func (cr *Capturer) Annotate(ctx context.Context, a Annotation, p plan.Progress) (catalog.Snapshot, error) {
	if err := a.Check(); err != nil {
		return catalog.Snapshot{}, err
	}
	word := a.Snapshot
	for attempt := 1; ; attempt++ {
		s, err := cr.catalog.Resolve(ctx, word)
		if err != nil {
			return catalog.Snapshot{}, err
		}
		now, err := cr.annotate(ctx, s, a, p)
		if !errors.Is(err, catalog.ErrChanged) || attempt == annotateAttempts {
			return now, err
		}
		word = s.Word() // a name may mean another one by now
	}
}

func (cr *Capturer) annotate(ctx context.Context, s catalog.Snapshot, a Annotation, p plan.Progress) (now catalog.Snapshot, err error) {
	p.Status("annotate", "annotating "+s.Title())
	if a.Name != nil && *a.Name != "" && *a.Name != s.Name {
		tag := catalog.TagOf(s.Container.Name, *a.Name)
		if _, err := cr.catalog.ObserveName(ctx, tag, s.Container.Name, false); err != nil {
			return catalog.Snapshot{}, err
		}
	}
	record, err := cr.annotated(ctx, s, a)
	if err != nil {
		return catalog.Snapshot{}, err
	}
	var u dockerop.Rollback
	defer func() { u.Unless(ctx, &err) }()
	made, err := cr.relabel(ctx, s, record, &u)
	if err != nil {
		return catalog.Snapshot{}, fmt.Errorf("annotate snapshot %s: %w", s.Title(), err)
	}
	now = catalog.Snapshot{Record: record, ImageID: made, Layers: s.Layers}
	if err := cr.catalog.Change(ctx, s, &now, &u); err != nil {
		return catalog.Snapshot{}, fmt.Errorf("annotate snapshot %s: %w", s.Title(), err)
	}
	cr.dropFormer(ctx, s.ImageID, p)
	cr.recordChange(ctx, now, p)
	return now, nil
}

// recordChange tells the store what is known about a snapshot by now. The change is made, so a failure is only a
// warning.
func (cr *Capturer) recordChange(ctx context.Context, s catalog.Snapshot, p plan.Progress) {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	if err := cr.archives.Record(ctx, s); err != nil {
		p.Warn("annotate", "the store still has what was known before: "+err.Error())
	}
}

// annotated is the record of a snapshot with the changes. Only what was sealed on this engine is sealed
// again: a foreign snapshot stays foreign.
func (cr *Capturer) annotated(ctx context.Context, s catalog.Snapshot, a Annotation) (labels.Record, error) {
	key, err := cr.catalog.KnownKey(ctx)
	if err != nil {
		return labels.Record{}, err
	}
	isOurs := s.IsSealed(key)
	former, err := cr.usedImages(ctx, s)
	if err != nil {
		return labels.Record{}, err
	}
	r := s.Record
	a.apply(&r)
	r.Updated, r.Former, r.Seal = cr.now().UTC(), former, ""
	if isOurs {
		r.Seal, err = labels.Seal(r, key)
	}
	return r, err
}

// usedImages are the IDs of the images of a snapshot that containers use, and of the present one: a
// container may be made of that at any time.
func (cr *Capturer) usedImages(ctx context.Context, s catalog.Snapshot) ([]string, error) {
	all, err := cr.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	used := slices.DeleteFunc(slices.Clone(s.Former), func(id string) bool {
		return !slices.ContainsFunc(all, func(c container.Summary) bool { return c.ImageID == id })
	})
	return append(used, s.ImageID), nil
}

// relabel makes an image with the same layers and other labels: it commits a container that never
// starts. Engines add no layer for one that wrote nothing, and no byte moves.
func (cr *Capturer) relabel(ctx context.Context, s catalog.Snapshot, r labels.Record, u *dockerop.Rollback) (made string, err error) {
	own, err := labels.Encode(r)
	if err != nil {
		return "", err
	}
	found, err := cr.docker.ImageInspect(ctx, s.ImageID)
	if cerrdefs.IsNotFound(err) {
		return "", catalog.ErrChanged
	}
	if err != nil {
		return "", fmt.Errorf("inspect image: %w", err)
	}
	config := imageDefaults(*found.Config)
	if config.Entrypoint == nil {
		config.Entrypoint = []string{} // or commit would take the scratch container's
	}
	config.Labels = map[string]string{}
	maps.Copy(config.Labels, found.Config.Labels)
	maps.DeleteFunc(config.Labels, func(key, _ string) bool { return strings.HasPrefix(key, labels.PrefixMeta) })
	for key := range found.Config.Labels {
		if strings.HasPrefix(key, labels.PrefixMeta) {
			config.Labels[key] = "" // a label that is left out would be inherited
		}
	}
	maps.Copy(config.Labels, own)
	name, err := cr.scratchName(s.ID)
	if err != nil {
		return "", err
	}
	err = cr.withScratch(ctx, s.ImageID, name, config.Volumes, func(scratch string) (err error) {
		made, err = cr.docker.Commit(ctx, scratch, container.CommitOptions{Config: config, Comment: catalog.CommitComment(s.ID)})
		if made != "" {
			u.Add(func(ctx context.Context) error { return cr.docker.RemoveImage(ctx, made) })
		}
		return err
	})
	return made, err
}

// scratchName is the name of a scratch container that no other command uses, whatever snapshot it is
// about.
func (cr *Capturer) scratchName(id labels.ID) (string, error) {
	unique, err := labels.NewID(cr.now().UTC(), cr.random)
	return string(id) + "-" + string(unique), err
}

// dropFormer removes the image that a snapshot was before, unless a container uses it. An engine may
// keep it as the parent of the new one.
func (cr *Capturer) dropFormer(ctx context.Context, id string, p plan.Progress) {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	_, err := cr.docker.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true})
	if err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) {
		p.Warn("annotate", "the former image is left until the next removal: "+err.Error())
	}
}
