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

// KnownStores are the volumes of stores that were looked for, by name.
type KnownStores map[string]storeVolume

// storeVolume is what is known of a store without reading it.
type storeVolume struct {
	there bool
	id    string // tells it from others of its name; empty: it has none
}

// OwnStore looks for the store that this program uses now: mostly there is no other.
func (a *Archives) OwnStore(ctx context.Context) (KnownStores, error) {
	stores := KnownStores{}
	_, err := a.findStore(ctx, stores, a.volumes.Store())
	return stores, err
}

// findStore looks for a store, once.
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

// At is the service that finds the archives of a snapshot: in the store that its labels
// name, unless the user has named one.
func (a *Archives) At(ctx context.Context, s catalog.Snapshot) (Service, error) {
	if a.given || s.Store == "" || s.ArchivedVolumes() == 0 {
		return a.volumes, nil
	}
	if s.StoreID == "" && s.Store != a.volumes.Store() {
		// Any volume can be meant, and a worker may write to it: only a snapshot of this engine is believed.
		key, err := a.catalog.KnownKey(ctx)
		if err != nil || !labels.IsSealed(s.Record, key) {
			return a.volumes, err
		}
	}
	return a.volumes.At(volumebackup.StoreRef{Name: s.Store, ID: s.StoreID, Snapshot: string(s.ID)}), nil
}

// AtWorker is the service that finds the archives, and the journals, which a worker has
// worked on: in the store that it has mounted. The engine keeps that store for as long as
// the worker's container is there.
func (a *Archives) AtWorker(worker container.Summary) Service {
	for _, m := range worker.Mounts {
		if m.Destination == StoreMount && m.Name != "" && m.Name != a.volumes.Store() {
			return a.volumes.At(volumebackup.StoreRef{Name: m.Name})
		}
	}
	return a.volumes
}

// StoreMount is where workers have the store.
const StoreMount = "/store"

// MarkGone marks the snapshots whose archives went with their store, and warns of
// that: the store was removed, or the volume of that name is another one.
func (a *Archives) MarkGone(ctx context.Context, list []catalog.Snapshot, stores KnownStores, p plan.Progress) error {
	lost := map[string]int{}
	for i := range list {
		s := &list[i]
		if s.Store == "" || s.ArchivedVolumes() == 0 {
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
