package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// A snapshot that is removed loses its name first. If the client is killed then, the snapshot is whole, and nobody could tell by its
// name what was to be removed. So the lock of the name, which the client holds meanwhile, says it, and stays for an hour.

// BeginRemoval takes the lock of the name of a snapshot that is going to be removed. The caller must call end.
func (cat *Catalog) BeginRemoval(ctx context.Context, s Snapshot) (end func(), err error) {
	switch {
	case s.Name != "":
		lock, err := cat.lockName(ctx, TagOf(s.Container.Name, s.Name), map[string]string{labels.KeyRemoves: string(s.ID)})
		if err != nil {
			return nil, err
		}
		return func() { _, _ = lock.Release(ctx) }, nil // what is not released, others take as from a dead client
	case s.LostName != "":
		return func() { cat.forgetRemoval(ctx, s) }, nil
	}
	return func() {}, nil
}

// forgetRemoval removes the lock that an interrupted removal of a snapshot has left.
func (cat *Catalog) forgetRemoval(ctx context.Context, s Snapshot) {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	begun, err := cat.begunRemovals(ctx)
	if err == nil && slices.Contains(begun, s.ID) {
		_ = cat.docker.RemoveLock(ctx, nameLock(TagOf(s.Container.Name, s.LostName))) // else it is swept
	}
}

// BeingRemoved returns the snapshot that word named until a removal of it took that name away, and was interrupted. The
// error is a [NotFoundError] if there is none.
func (cat *Catalog) BeingRemoved(ctx context.Context, word string) (Snapshot, error) {
	begun, err := cat.begunRemovals(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	for _, id := range begun {
		s, err := cat.Resolve(ctx, string(id))
		if err == nil && s.LostName != "" && (word == s.LostName || word == s.word(s.LostName)) {
			return s, nil
		}
	}
	return Snapshot{}, &NotFoundError{Word: word}
}

// begunRemovals are the IDs of the snapshots for whose removal a lock is held.
func (cat *Catalog) begunRemovals(ctx context.Context) ([]labels.ID, error) {
	locks, err := cat.docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labels.KeyRemoves))})
	if err != nil {
		return nil, fmt.Errorf("look for removals that were begun: %w", err)
	}
	var ids []labels.ID
	for _, lock := range locks.Volumes {
		if id, err := labels.ParseID(lock.Labels[labels.KeyRemoves]); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
