package archives

import (
	"context"
	"fmt"
	"maps"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// KnownStores are the volumes of stores that were looked up so far, by name.
type KnownStores map[string]storeVolume

// storeVolume is what is known of a store without reading it.
type storeVolume struct {
	there bool
	id    string // distinguishes it from others of its name; may be empty
}

// OwnStore looks up the store of new snapshots. Most engines have no other.
func (a *Archives) OwnStore(ctx context.Context) (KnownStores, error) {
	stores := KnownStores{}
	_, err := a.findStore(ctx, stores, a.volumes.Store())
	return stores, err
}

// findStore looks up a store, unless it is in stores already.
func (a *Archives) findStore(ctx context.Context, stores KnownStores, name string) (storeVolume, error) {
	if found, known := stores[name]; known {
		return found, nil
	}
	v, err := a.docker.VolumeInspect(ctx, name)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return storeVolume{}, fmt.Errorf("inspect store %s: %w", name, err)
	}
	stores[name] = storeVolume{there: err == nil, id: v.Labels[labels.KeyStoreID]}
	return stores[name], nil
}

// At returns the service for the store that holds a snapshot's archives: the one that its labels
// name, unless the user has named one.
func (a *Archives) At(ctx context.Context, s catalog.Snapshot) (Service, error) {
	if a.given || s.Store == "" || !s.UsesStore() {
		return a.volumes, nil
	}
	if s.StoreID == "" && s.Store != a.volumes.Store() {
		// Without an ID the labels could name any volume, and a worker may write to it. So believe them only if the
		// snapshot was sealed on this engine.
		key, err := a.catalog.KnownKey(ctx)
		if err != nil || !s.IsSealed(key) {
			return a.volumes, err
		}
	}
	return a.volumes.At(volumebackup.StoreRef{Name: s.Store, ID: s.StoreID, Snapshot: string(s.ID)}), nil
}

// AtWorker returns the service for the store that a worker mounts. Its archives and journals are
// there, and the engine keeps that volume for as long as the worker's container exists.
func (a *Archives) AtWorker(worker container.Summary) Service {
	for _, m := range worker.Mounts {
		if m.Destination == storeMount && m.Name != "" && m.Name != a.volumes.Store() {
			return a.volumes.At(volumebackup.StoreRef{Name: m.Name})
		}
	}
	return a.volumes
}

// storeMount is where workers mount the store.
const storeMount = "/store"

// MarkGone sets Gone on the snapshots in list whose store does not exist any more, and warns of
// them: somebody removed the volume, or made another of its name.
func (a *Archives) MarkGone(ctx context.Context, list []catalog.Snapshot, stores KnownStores, p plan.Progress) error {
	lost := map[string]int{}
	for i := range list {
		s := &list[i]
		if s.Store == "" || !s.UsesStore() {
			continue
		}
		found, err := a.findStore(ctx, stores, s.Store)
		if err != nil {
			return err
		}
		if s.Gone = !found.there || s.StoreID != "" && found.id != s.StoreID; s.Gone {
			lost[s.Store]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		p.Warn("list", fmt.Sprintf("the store %s that held the volumes of %d of these snapshots is gone. Was it removed (docker volume prune)?", name, lost[name]))
	}
	return nil
}

// Detail says how much is told of each entry.
type Detail int

// The details.
const (
	Listed Detail = iota // what the list of files says
	Summed               // the SHA-256 of each file, too; those of larger files take reading them
)

// Entries calls visit with every entry of an archived volume, sorted by path. It fails if the
// snapshot does not hold the volume's content.
func (a *Archives) Entries(ctx context.Context, s catalog.Snapshot, m labels.Mount, detail Detail, visit func(volumebackup.Entry)) error {
	if m.Archive == nil {
		return fmt.Errorf("the content of %s is not in snapshot %s", labels.DescribeKey(m.Key()), s.Title())
	}
	volumes, err := a.At(ctx, s)
	if err != nil {
		return err
	}
	return volumes.Entries(ctx, volumebackup.ListOptions{Snapshot: string(s.ID), Archive: m.Archive.Index, Root: m.Archive.Root, Sums: detail == Summed}, visit)
}
