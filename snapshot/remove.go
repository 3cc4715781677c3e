package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Remove untags and deletes the snapshot that word means, and returns it. A pinned
// one is refused without Force. Containers that were made from it keep its layers
// for as long as they are there. If it was the newest, latest moves to the newest
// that is left. If it fails, the snapshot is whole again, or gone.
func (e *Engine) Remove(ctx context.Context, word string, o RemoveOptions, p Progress) (Snapshot, error) {
	s, err := e.Resolve(ctx, word)
	if err != nil {
		return Snapshot{}, err
	}
	if s.Pinned && !o.Force {
		return s, &PinnedError{ID: s.ID}
	}
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ahead := e.askAhead(asking)
	users, err := e.users(ctx, s)
	if err != nil {
		return s, err
	}
	if err := e.untag(ctx, s); err != nil {
		return s, err
	}
	if len(users) > 0 {
		p.warn("remove", fmt.Sprintf("the layers of %s are used by container %s, and are freed when that is removed", s.ID, strings.Join(users, ", ")))
	}
	ctx = context.WithoutCancel(ctx)
	engine, err := ahead.engine()
	if err != nil {
		p.warn("sweep", "what interrupted commands have left is not removed: "+err.Error())
		return s, e.removeArchives(ctx, s, nil, p)
	}
	err = e.removeArchives(ctx, s, &engine, p)
	if cerrdefs.IsConflict(err) { // backups and restores that go on and on keep the store
		p.warn("remove", fmt.Sprintf("the space of %s is freed by the next docker snapshot rm: %v", s.ID, err))
		err = nil
	}
	if err != nil {
		return s, err
	}
	e.sweep(ctx, engine, p)
	return s, nil
}

// untag removes every tag of a snapshot, and thereby its image. The ID tag goes
// last: for as long as it is there, all of the snapshot is.
func (e *Engine) untag(ctx context.Context, s Snapshot) (err error) {
	var u undo
	defer func() { u.unless(ctx, &err) }()
	latest := latestOf(s.Container.Name)
	hasLatest := slices.Contains(s.Refs, latest)
	if hasLatest {
		u.add(func(ctx context.Context) error {
			_, err := e.restoreLatest(ctx, s.Container.Name, "")
			return err
		})
		passed, err := e.passLatest(ctx, s)
		if err != nil {
			return err
		}
		hasLatest = !passed
	}
	for _, ref := range s.Refs {
		if ref == s.Ref() || ref == latest && !hasLatest {
			continue
		}
		if err := e.untagOne(ctx, s, ref, &u); err != nil {
			return err
		}
	}
	if hasLatest { // somebody may have made the next one meanwhile, whose tag that was
		if _, err := e.restoreLatest(ctx, s.Container.Name, s.ID); err != nil {
			return err
		}
	}
	return e.untagOne(ctx, s, s.Ref(), &u)
}

func (e *Engine) untagOne(ctx context.Context, s Snapshot, ref string, u *undo) error {
	u.add(func(ctx context.Context) error { return e.retag(ctx, ref, s.ImageID) })
	if err := e.removeImage(ctx, ref); err != nil {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	return nil
}

// removeArchives frees what the store keeps for a snapshot whose image is gone,
// and for others of this engine whose images were removed long ago, with docker image
// prune for one. If the engine is not known, those stay.
func (e *Engine) removeArchives(ctx context.Context, s Snapshot, engine *engineInfo, p Progress) error {
	if e.volumes == nil || s.ArchivedVolumes() == 0 {
		return nil
	}
	o := volumebackup.RemoveOptions{Claim: claimOf(s.Record)}
	if engine != nil {
		existing, err := e.existing(ctx)
		if err != nil {
			return err
		}
		o.Seen = &volumebackup.Seen{Engine: engine.id, ImageStore: engine.imageStore, Snapshots: existing}
	}
	removed, err := e.volumes.Remove(ctx, o)
	if slices.Contains(removed.Foreign, string(s.ID)) {
		p.warn("remove", fmt.Sprintf("the archives of %s stay: they belong to a snapshot of another container", s.ID))
	}
	return err
}

// claimOf is what a snapshot knows of its archives. Any image can have its ID.
func claimOf(r labels.Record) volumebackup.Claim {
	claim := volumebackup.Claim{Snapshot: string(r.ID), Container: r.Container.ID, ContainerName: r.Container.Name, Roots: map[int]string{}}
	for _, m := range r.Mounts {
		if m.Archive != nil {
			claim.Roots[m.Archive.Index] = m.Archive.Root
		}
	}
	return claim
}

// existing lists the IDs of all snapshots that have an image. It goes by the
// tags: labels that cannot be read are no reason to lose what belongs to them.
func (e *Engine) existing(ctx context.Context) ([]string, error) {
	images, err := e.listImages(ctx, namespace+"*")
	if err != nil {
		return nil, err
	}
	ids := []string{} // not nil: none is an answer, too
	for _, summary := range images {
		for _, ref := range summary.RepoTags {
			if id, err := labels.ParseID(ref[strings.LastIndex(ref, ":")+1:]); err == nil {
				ids = append(ids, string(id))
			}
		}
	}
	return ids, nil
}

// users lists the names of the containers that were made from a snapshot. The
// engine's ancestor filter also finds those of images further up, so IDs are compared.
func (e *Engine) users(ctx context.Context, s Snapshot) ([]string, error) {
	all, err := e.docker.ContainerList(ctx, container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("ancestor", s.ImageID)),
	})
	if err != nil {
		return nil, fmt.Errorf("list containers of image %s: %w", s.Ref(), err)
	}
	var names []string
	for _, c := range all {
		if c.ImageID == s.ImageID {
			names = append(names, summaryName(c))
		}
	}
	slices.Sort(names)
	return names, nil
}

// orphanAge is how old an unfinished image must be before it is taken for one
// that nobody will finish.
const orphanAge = time.Hour

// comment marks the image that a commit makes. Unlike labels it is not passed
// on to images that are built FROM it.
func comment(id labels.ID) string { return "docker snapshot " + string(id) }

// sweep removes what nobody will finish: images of ours without a tag, and the
// containers that making a flat image needs, if they are old. A client that made
// them was killed. Removing is not a hot path, so it is done there.
func (e *Engine) sweep(ctx context.Context, engine engineInfo, p Progress) {
	now, err := engine.now()
	if err == nil {
		err = errors.Join(e.sweepScratch(ctx, now), e.sweepImages(ctx, now))
	}
	if err != nil {
		p.warn("sweep", "what interrupted commands have left could not be removed: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func (e *Engine) sweepScratch(ctx context.Context, now time.Time) error {
	scratch, err := e.docker.ContainerList(ctx, container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("name", scratchPrefix), filters.Arg("label", labels.KeyVersion)),
	})
	for _, c := range scratch {
		if isOld(c.Created, now) && strings.HasPrefix(summaryName(c), scratchPrefix) {
			err = errors.Join(err, e.removeContainer(ctx, c.ID))
		}
	}
	return err
}

func (e *Engine) sweepImages(ctx context.Context, now time.Time) error {
	untagged, err := e.docker.ImageList(ctx, image.ListOptions{
		Filters: filters.NewArgs(filters.Arg("dangling", "true"), filters.Arg("label", labels.KeyVersion)),
	})
	for _, summary := range untagged {
		if isOld(summary.Created, now) {
			err = errors.Join(err, e.removeOrphan(ctx, summary.ID))
		}
	}
	return err
}

// isOld tells whether what was made at that Unix time is taken for an orphan. Both
// times are the engine's.
func isOld(created int64, now time.Time) bool { return now.Sub(time.Unix(created, 0)) >= orphanAge }

func (e *Engine) removeOrphan(ctx context.Context, id string) error {
	found, err := e.docker.ImageInspect(ctx, id)
	if err != nil || len(found.RepoTags) > 0 || found.Config == nil {
		return err
	}
	if found.Comment != comment(labels.ID(found.Config.Labels[labels.KeyID])) {
		return nil // somebody's image that was built FROM a snapshot
	}
	_, err = e.docker.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true})
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return nil // a container lives on it, or somebody else was faster
	}
	return err
}
