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

// Remove frees what stores keep for the snapshots gone, whose images are removed already, with one
// call for each store. It also frees what these stores keep for snapshots of this engine whose
// images were removed long ago by others, such as docker image prune; engine nil means that this
// engine is not known, and keeps those. It returns the snapshots for which it failed, and how many
// bytes the stores have freed.
func (a *Archives) Remove(ctx context.Context, gone []catalog.Snapshot, engine *dockerop.Info, p plan.Progress) (failed map[labels.ID]error, freed int64) {
	stores, failed := a.byStore(ctx, gone)
	if len(stores) == 0 {
		return failed, 0
	}
	seen, err := a.Seen(ctx, engine)
	for _, one := range stores {
		failure := err
		if failure == nil {
			var bytes int64
			bytes, failure = removeClaimed(ctx, one.volumes, one.snapshots, seen, p)
			freed += bytes
		}
		for _, s := range one.snapshots {
			failed[s.ID] = failure
		}
	}
	return failed, freed
}

// stored is what one store holds for.
type stored struct {
	volumes   Service
	snapshots []catalog.Snapshot
}

// byStore sorts snapshots by the stores that hold their archives, in the order in which they need
// them. Those without archives are left out. It returns the snapshots whose store is not known.
func (a *Archives) byStore(ctx context.Context, all []catalog.Snapshot) (stores []*stored, failed map[labels.ID]error) {
	type store struct{ name, id string }
	known, failed := map[store]*stored{}, map[labels.ID]error{}
	for _, s := range all {
		if !s.UsesStore() {
			continue
		}
		its, err := a.At(ctx, s)
		if err != nil {
			failed[s.ID] = err
			continue
		}
		at := store{its.Store(), s.StoreID}
		if known[at] == nil {
			known[at] = &stored{volumes: its}
			stores = append(stores, known[at])
		}
		known[at].snapshots = append(known[at].snapshots, s)
	}
	return stores, failed
}

// removeClaimed frees what one store keeps for the snapshots gone. It returns how many bytes.
func removeClaimed(ctx context.Context, volumes Service, gone []catalog.Snapshot, seen *volumebackup.Seen, p plan.Progress) (int64, error) {
	o := volumebackup.RemoveOptions{Seen: seen}
	for _, s := range gone {
		o.Claims = append(o.Claims, ClaimOf(s.Record))
	}
	removed, err := volumes.Remove(ctx, o)
	for _, id := range removed.Foreign {
		p.Warn("remove", fmt.Sprintf("the archives of %s stay: they belong to a snapshot of another container", id))
	}
	return removed.Freed, err
}

// Seen says which snapshots still have an image, so that a store can find archives without one. It
// returns nil if engine is nil.
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

// ClaimOf describes the archives of a snapshot as its labels do. A store compares that with its
// manifests, because any image can bear the same ID.
func ClaimOf(r labels.Record) volumebackup.Claim {
	claim := volumebackup.Claim{Snapshot: string(r.ID), Container: r.Container.ID, ContainerName: r.Container.Name, Roots: map[int]string{}}
	for _, m := range r.Mounts {
		if m.Archive != nil {
			claim.Roots[m.Archive.Index] = m.Archive.Root
		}
	}
	return claim
}

// existing returns the IDs of all snapshots that have an image. It reads them from the tags, so
// that archives survive even if labels cannot be read.
func (a *Archives) existing(ctx context.Context) ([]string, error) {
	images, err := a.catalog.ListImages(ctx, catalog.Namespace+"*")
	if err != nil {
		return nil, err
	}
	ids := []string{} // not nil, which would mean that it is not known
	for _, summary := range images {
		for _, ref := range summary.RepoTags {
			if id, err := labels.ParseID(ref[strings.LastIndex(ref, ":")+1:]); err == nil {
				ids = append(ids, string(id))
			}
		}
	}
	return ids, nil
}
