package archives

import (
	"context"
	"fmt"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Remove frees what the stores keep for snapshots whose images are gone, each
// store in one go, and for others of this engine whose images were removed long ago, with
// docker image prune for one. If the engine is not known, those stay. It returns which
// snapshots that failed for.
func (a *Archives) Remove(ctx context.Context, gone []catalog.Snapshot, engine *dockerop.Info, p plan.Progress) map[labels.ID]error {
	failed := map[labels.ID]error{}
	type store struct{ name, id string }
	var stores []store // in the order of the snapshots
	claims, in := map[store][]catalog.Snapshot{}, map[store]Service{}
	for _, s := range gone {
		if s.ArchivedVolumes() == 0 {
			continue
		}
		its, err := a.At(ctx, s)
		if err != nil {
			failed[s.ID] = err
			continue
		}
		at := store{its.Store(), s.StoreID}
		if claims[at] == nil {
			stores, in[at] = append(stores, at), its
		}
		claims[at] = append(claims[at], s)
	}
	if len(stores) == 0 {
		return failed
	}
	seen, err := a.Seen(ctx, engine)
	for _, at := range stores {
		failure := err
		if failure == nil {
			failure = removeClaimed(ctx, in[at], claims[at], seen, p)
		}
		for _, s := range claims[at] {
			failed[s.ID] = failure
		}
	}
	return failed
}

// removeClaimed frees what one store keeps for snapshots.
func removeClaimed(ctx context.Context, volumes Service, gone []catalog.Snapshot, seen *volumebackup.Seen, p plan.Progress) error {
	o := volumebackup.RemoveOptions{Seen: seen}
	for _, s := range gone {
		o.Claims = append(o.Claims, ClaimOf(s.Record))
	}
	removed, err := volumes.Remove(ctx, o)
	for _, id := range removed.Foreign {
		p.Warn("remove", fmt.Sprintf("the archives of %s stay: they belong to a snapshot of another container", id))
	}
	return err
}

// Seen is what there is on the engine; nil if that one is not known.
func (a *Archives) Seen(ctx context.Context, engine *dockerop.Info) (*volumebackup.Seen, error) {
	if engine == nil {
		return nil, nil
	}
	existing, err := a.existing(ctx)
	if err != nil {
		return nil, err
	}
	return &volumebackup.Seen{Engine: engine.ID, ImageStore: engine.ImageStore, Snapshots: existing}, nil
}

// ClaimOf is what a snapshot knows of its archives. Any image can have its ID.
func ClaimOf(r labels.Record) volumebackup.Claim {
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
func (a *Archives) existing(ctx context.Context) ([]string, error) {
	images, err := a.catalog.ListImages(ctx, catalog.Namespace+"*")
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
