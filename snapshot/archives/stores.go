package archives

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
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
func (e *Archives) OwnStore(ctx context.Context) (KnownStores, error) {
	stores := KnownStores{}
	if e.volumes == nil {
		return stores, nil
	}
	_, err := e.findStore(ctx, stores, e.volumes.Store())
	return stores, err
}

// findStore looks for a store, once.
func (e *Archives) findStore(ctx context.Context, stores KnownStores, name string) (storeVolume, error) {
	if found, known := stores[name]; known {
		return found, nil
	}
	v, err := e.docker.VolumeInspect(ctx, name)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return storeVolume{}, fmt.Errorf("inspect store %s: %w", name, err)
	}
	stores[name] = storeVolume{there: err == nil, id: v.Labels[labels.KeyStoreID]}
	return stores[name], nil
}

// At is the service that finds the archives of a snapshot: in the store that its labels
// name, unless the user has named one.
func (e *Archives) At(ctx context.Context, s catalog.Snapshot) (Service, error) {
	if e.volumes == nil || e.given || s.Store == "" || s.ArchivedVolumes() == 0 {
		return e.volumes, nil
	}
	if s.StoreID == "" && s.Store != e.volumes.Store() {
		// Any volume can be meant, and a worker may write to it: only a snapshot of this engine is believed.
		key, err := e.catalog.KnownKey(ctx)
		if err != nil || !labels.IsSealed(s.Record, key) {
			return e.volumes, err
		}
	}
	return e.volumes.At(volumebackup.StoreRef{Name: s.Store, ID: s.StoreID, Snapshot: string(s.ID)}), nil
}

// AtWorker is the service that finds the archives, and the journals, which a worker has
// worked on: in the store that it has mounted. The engine keeps that store for as long as
// the worker's container is there.
func (e *Archives) AtWorker(worker container.Summary) Service {
	for _, m := range worker.Mounts {
		if m.Destination == StoreMount && m.Name != "" && m.Name != e.volumes.Store() {
			return e.volumes.At(volumebackup.StoreRef{Name: m.Name})
		}
	}
	return e.volumes
}

// StoreMount is where workers have the store.
const StoreMount = "/store"

// MarkGone marks the snapshots whose archives went with their store, and warns of
// that: the store was removed, or the volume of that name is another one.
func (e *Archives) MarkGone(ctx context.Context, list []catalog.Snapshot, stores KnownStores, p plan.Progress) error {
	lost := map[string]int{}
	for i := range list {
		s := &list[i]
		if s.Store == "" || s.ArchivedVolumes() == 0 {
			continue
		}
		found, err := e.findStore(ctx, stores, s.Store)
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
