package removal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// PurgeKind is a kind of thing that this program leaves on an engine.
type PurgeKind string

// The kinds, in the order in which they are removed.
const (
	PurgeSnapshot    PurgeKind = "snapshot"
	PurgeRun         PurgeKind = "run"    // what is known of a run
	PurgeTag         PurgeKind = "tag"    // of an image that was a snapshot, but has lost its ID tag or readable labels
	PurgeWorker      PurgeKind = "worker" // the container of a dead worker
	PurgeStore       PurgeKind = "store"
	PurgeKey         PurgeKind = "key" // the volume with the engine's key
	PurgeWorkerImage PurgeKind = "worker_image"
)

// Purgeable is one thing that [Remover.Purge] removes.
type Purgeable struct {
	Kind      PurgeKind
	Name      string
	Size      int64  // bytes; 0: unknown, or counted with the snapshots
	Container string // of a snapshot: whose it is
	Pinned    bool   // of a snapshot
	id        string // what the engine calls it, if not Name
}

// InterruptedError says that an interrupted operation has to be recovered first.
type InterruptedError struct {
	Worker  string // name of the dead worker's container
	Purpose string
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("an operation was interrupted (%s, in container %s)", e.Purpose, e.Worker)
}

// Unwrap gives the error its class.
func (e *InterruptedError) Unwrap() error { return cerrdefs.ErrFailedPrecondition }

// FindPurgeable returns everything that this program has made on the engine, except containers and
// their volumes. It fails if an operation is under way ([volumebackup.LockedError]) or was
// interrupted ([InterruptedError]). kept names the stores that users made themselves, which stay.
func (rm *Remover) FindPurgeable(ctx context.Context, p plan.Progress) (all []Purgeable, kept []string, err error) {
	workers, err := rm.deadWorkers(ctx)
	if err != nil {
		return nil, nil, err
	}
	snapshots, err := rm.catalog.Find(ctx, p, catalog.Namespace+"*")
	if err != nil {
		return nil, nil, err
	}
	for _, s := range snapshots {
		all = append(all, Purgeable{Kind: PurgeSnapshot, Name: string(s.ID), Size: s.StoredBytes(), Container: s.Container.Name, Pinned: s.Pinned, id: s.Ref()})
	}
	sessions, err := rm.catalog.Sessions(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range sessions {
		all = append(all, Purgeable{Kind: PurgeRun, Name: s.RunID, id: catalog.SessionRef(s.RunID)})
	}
	rest, err := rm.looseTags(ctx, snapshots)
	if err != nil {
		return nil, nil, err
	}
	all = append(append(all, rest...), workers...)
	stores, err := rm.purgeableVolumes(ctx)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, stores...)
	kept = rm.storesOfUsers(ctx, snapshots, stores)
	images, err := rm.volumes.Images(ctx)
	for _, i := range images {
		all = append(all, Purgeable{Kind: PurgeWorkerImage, Name: i.ID, Size: i.Size, id: i.ID})
	}
	return all, kept, err
}

// storesOfUsers returns the names of existing volumes that snapshots are stored in, without our
// own.
func (rm *Remover) storesOfUsers(ctx context.Context, snapshots []catalog.Snapshot, own []Purgeable) (kept []string) {
	names := map[string]bool{}
	for _, s := range snapshots {
		names[s.Store] = true
	}
	delete(names, "") // of snapshots without archives
	for _, v := range own {
		delete(names, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, err := rm.docker.VolumeInspect(ctx, name); err == nil {
			kept = append(kept, name)
		}
	}
	return kept
}

// deadWorkers returns the workers' containers. It fails if one is at work, or has left something to
// put right.
func (rm *Remover) deadWorkers(ctx context.Context) ([]Purgeable, error) {
	workers, err := rm.pending.Workers(ctx, volumebackup.LabelPurpose)
	if err != nil {
		return nil, err
	}
	var dead []Purgeable
	for _, w := range workers {
		name, purpose := dockerop.SummaryName(w.Summary), w.Labels[volumebackup.LabelPurpose]
		if w.Alive {
			return nil, &volumebackup.LockedError{Holder: name, Purpose: purpose}
		}
		if !pending.HoldsNothing(w) {
			return nil, &InterruptedError{Worker: name, Purpose: purpose}
		}
		dead = append(dead, Purgeable{Kind: PurgeWorker, Name: name, id: w.ID})
	}
	return dead, nil
}

// looseTags returns the tags in our namespace of images that we made and that are no snapshots any
// more. Images that users built FROM a snapshot are theirs, whatever their tags.
func (rm *Remover) looseTags(ctx context.Context, snapshots []catalog.Snapshot) ([]Purgeable, error) {
	images, err := rm.catalog.ListImages(ctx, catalog.Namespace+"*")
	if err != nil {
		return nil, err
	}
	var loose []Purgeable
	removed, err := rm.catalog.RemovedImages(ctx)
	if err != nil {
		return nil, err
	}
	for _, summary := range removed {
		ref := catalog.RemovedTag(summary.ID)
		loose = append(loose, Purgeable{Kind: PurgeTag, Name: ref, id: ref})
	}
	for _, summary := range images {
		_, labelled := summary.Labels[labels.KeyID]
		isListed := slices.ContainsFunc(snapshots, func(s catalog.Snapshot) bool { return s.ImageID == summary.ID })
		if !labelled || isListed {
			continue
		}
		found, err := rm.docker.ImageInspect(ctx, summary.ID)
		if cerrdefs.IsNotFound(err) || err == nil && !catalog.IsCommitted(found) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("inspect image %s: %w", summary.ID, err)
		}
		for _, ref := range summary.RepoTags {
			if strings.HasPrefix(ref, catalog.Namespace) {
				loose = append(loose, Purgeable{Kind: PurgeTag, Name: ref, id: ref})
			}
		}
	}
	return loose, nil
}

// purgeableVolumes returns the stores that we made, and the volume with the engine's key.
func (rm *Remover) purgeableVolumes(ctx context.Context) ([]Purgeable, error) {
	stores, err := rm.archives.StoreNames(ctx)
	if err != nil {
		return nil, err
	}
	var all []Purgeable
	for _, name := range stores {
		all = append(all, Purgeable{Kind: PurgeStore, Name: name})
	}
	key, err := rm.docker.VolumeInspect(ctx, catalog.KeyVolume)
	if cerrdefs.IsNotFound(err) || err == nil && key.Labels[catalog.LabelKey] == "" {
		return all, nil
	}
	return append(all, Purgeable{Kind: PurgeKey, Name: catalog.KeyVolume}), dockerop.Describe(err, "inspect volume "+catalog.KeyVolume)
}

// Purge removes what [Remover.FindPurgeable] has found, and what interrupted commands have left. It
// returns what it has removed, and goes on after a failure.
func (rm *Remover) Purge(ctx context.Context, all []Purgeable, p plan.Progress) ([]Purgeable, error) {
	if _, err := rm.deadWorkers(ctx); err != nil { // an operation may have begun since FindPurgeable
		return nil, err
	}
	failures := make([]error, len(all))
	chosen, at := removals{}, []int{}
	for i, one := range all {
		if one.Kind != PurgeSnapshot {
			continue
		}
		s, err := rm.catalog.Lookup(ctx, one.Name, catalog.ParseTag(one.id))
		if failures[i] = err; err == nil {
			chosen, at = append(chosen, &Removal{Word: one.Name, Snapshot: s}), append(at, i)
		}
	}
	rm.untagAll(ctx, chosen, p)
	for n, r := range chosen {
		failures[at[n]] = r.Err
	}
	failures = append(failures, rm.forgetRemoved(ctx))
	if now, err := rm.docker.Time(ctx); err == nil { // whatever its age, because nobody is at work
		now = now.Add(orphanAge)
		failures = append(failures, rm.sweepScratch(ctx, now), rm.sweepImages(ctx, now), rm.sweepLocks(ctx, now))
	}
	var removed []Purgeable
	for i, one := range all {
		if failures[i] == nil {
			failures[i] = rm.purgeOne(ctx, one)
		}
		if cerrdefs.IsNotFound(failures[i]) { // somebody else has removed it
			failures[i] = nil
			continue
		}
		if failures[i] == nil {
			removed = append(removed, one)
		}
	}
	return removed, errors.Join(failures...)
}

// forgetRemoved takes the tags from the images of removed snapshots, so that nothing of ours is left on the engine.
func (rm *Remover) forgetRemoved(ctx context.Context) error {
	images, err := rm.catalog.RemovedImages(ctx)
	for _, summary := range images {
		err = errors.Join(err, rm.docker.RemoveImage(ctx, catalog.RemovedTag(summary.ID)))
	}
	return err
}

// purgeOne removes one thing that is not a snapshot.
func (rm *Remover) purgeOne(ctx context.Context, one Purgeable) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	switch one.Kind {
	case PurgeTag, PurgeRun:
		err = rm.docker.RemoveImage(ctx, one.id)
	case PurgeWorker:
		err = rm.docker.ContainerRemove(ctx, one.id, container.RemoveOptions{Force: true})
	case PurgeStore, PurgeKey:
		err = rm.docker.VolumeRemove(ctx, one.Name, false)
	case PurgeWorkerImage:
		_, err = rm.docker.ImageRemove(ctx, one.id, image.RemoveOptions{Force: true, PruneChildren: true})
	case PurgeSnapshot:
	}
	return dockerop.Describe(err, "remove "+string(one.Kind)+" "+one.Name)
}
