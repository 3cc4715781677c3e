package removal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Removal is what became of one of the words that Remove was given.
type Removal struct {
	Word     string
	Snapshot catalog.Snapshot // if there is one
	Err      error            // nil: it was removed
}

// removals are what becomes of each word, in their order.
type removals []*Removal

// left are those that nothing stands against so far.
func (all removals) left() removals {
	return slices.DeleteFunc(slices.Clone(all), func(r *Removal) bool { return r.Err != nil })
}

// snapshots are those that are removed.
func (all removals) snapshots() []catalog.Snapshot {
	snapshots := make([]catalog.Snapshot, len(all))
	for i, r := range all {
		snapshots[i] = r.Snapshot
	}
	return snapshots
}

// Remove untags and deletes the snapshots that words mean, and says what became of each:
// one that cannot be removed does not keep the others. A pinned one is refused without
// Force. Containers that were made from one keep its layers for as long as they are
// there. If the newest of a container is removed, latest moves to the newest that is
// left. A snapshot whose removal fails is whole again, or gone.
func (rm *Remover) Remove(ctx context.Context, words []string, o Options, p plan.Progress) []Removal {
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	early := rm.docker.AskInfoEarly(asking)
	all := rm.chooseRemoved(ctx, words, o)
	rm.untagAll(ctx, all.left(), p)
	if gone := all.left(); len(gone) > 0 {
		rm.freeRemoved(context.WithoutCancel(ctx), gone, early, p)
	}
	results := make([]Removal, len(all))
	for i, r := range all {
		results[i] = *r
	}
	return results
}

// chooseRemoved finds the snapshots that words mean, and what stands against removing them.
func (rm *Remover) chooseRemoved(ctx context.Context, words []string, o Options) removals {
	all := make(removals, len(words))
	known := rm.listMany(ctx, words)
	var calls errgroup.Group
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	for i, word := range words {
		r := &Removal{Word: word}
		all[i] = r
		calls.Go(func() error {
			if r.Snapshot = known[word]; r.Snapshot.ID == "" {
				r.Snapshot, r.Err = rm.catalog.Resolve(ctx, word)
			}
			if r.Err == nil && r.Snapshot.Pinned && !o.Force {
				r.Err = &catalog.PinnedError{ID: r.Snapshot.ID}
			}
			return nil // it is that word's
		})
	}
	_ = calls.Wait()
	chosen := map[string]bool{}
	for _, r := range all.left() {
		if chosen[r.Snapshot.ImageID] { // by another word
			r.Err = &catalog.NotFoundError{Word: r.Word}
		}
		chosen[r.Snapshot.ImageID] = true
	}
	return all
}

// ManyWords is from how many words on it takes longer to look for each than to list all
// snapshots.
const ManyWords = 8

// listMany finds, of many words, the snapshots whose full IDs they are, if no other one
// has that ID. All the rest has to be resolved.
func (rm *Remover) listMany(ctx context.Context, words []string) map[string]catalog.Snapshot {
	if len(words) < ManyWords {
		return nil
	}
	all, err := rm.catalog.Find(ctx, nil, catalog.Namespace+"*")
	if err != nil {
		return nil // then resolving says why
	}
	known := map[string]catalog.Snapshot{}
	for _, s := range all {
		id := string(s.ID)
		if _, twice := known[id]; twice {
			s = catalog.Snapshot{} // it is ambiguous
		}
		known[id] = s
	}
	return known
}

// untagAll removes the tags of snapshots, several at once. But those of containers that
// run from another one of them go last, one by one: the engine that removes such an image
// looks whether the one below it can go, too.
func (rm *Remover) untagAll(ctx context.Context, chosen removals, p plan.Progress) {
	if len(chosen) == 0 {
		return
	}
	users, err := rm.users(ctx)
	going, images := catalog.IDSet{}, map[string]bool{}
	for _, r := range chosen {
		r.Err = err
		going[r.Snapshot.ID], images[r.Snapshot.ImageID] = true, true
	}
	if err != nil {
		return
	}
	var calls errgroup.Group
	calls.SetLimit(dockerop.MaxConcurrentCalls)
	var last removals
	for _, r := range chosen {
		if images[r.Snapshot.Container.ImageID] {
			last = append(last, r)
			continue
		}
		calls.Go(func() error {
			r.Err = rm.untag(ctx, r.Snapshot, going)
			return nil // it is that snapshot's
		})
	}
	_ = calls.Wait()
	for _, r := range last {
		r.Err = rm.untag(ctx, r.Snapshot, going)
	}
	rm.keepLatest(ctx, chosen, p)
	for _, r := range chosen.left() {
		if names := users[r.Snapshot.ImageID]; len(names) > 0 {
			p.Warn("remove", fmt.Sprintf("the layers of %s are used by container %s, and are freed when that is removed", r.Snapshot.ID, strings.Join(names, ", ")))
		}
	}
}

// keepLatest gives the tag latest to snapshots that were going to be removed, and are
// still there, if they are the newest.
func (rm *Remover) keepLatest(ctx context.Context, chosen removals, p plan.Progress) {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	done := map[string]bool{}
	for _, r := range chosen {
		name := r.Snapshot.Container.Name
		if r.Err == nil || done[name] || len(chosen) == 1 { // one alone has been put right
			continue
		}
		done[name] = true
		if _, err := rm.catalog.SetLatest(ctx, name, nil); err != nil {
			p.Warn("remove", fmt.Sprintf("the tag latest of container %s may not be on its newest snapshot: %v", name, err))
		}
	}
}

// freeRemoved frees what stores keep for snapshots whose images are gone, and what
// interrupted commands have left.
func (rm *Remover) freeRemoved(ctx context.Context, gone removals, early dockerop.EarlyInfo, p plan.Progress) {
	var known *dockerop.Info
	engine, err := early.Info()
	if err == nil {
		known = &engine
	}
	failed := rm.archives.Remove(ctx, gone.snapshots(), known, p)
	var busy []string
	var inUse error
	for _, r := range gone {
		r.Err = failed[r.Snapshot.ID]
		if cerrdefs.IsConflict(r.Err) { // backups and restores that go on and on keep the store
			busy, inUse = append(busy, string(r.Snapshot.ID)), r.Err
			r.Err = nil
		}
	}
	if len(busy) > 0 {
		p.Warn("remove", fmt.Sprintf("the next removal frees the space of %s: %v", strings.Join(busy, ", "), inUse))
	}
	if err != nil {
		p.Warn("sweep", "what interrupted commands have left is not removed: "+err.Error())
		return
	}
	rm.SweepOrphans(ctx, engine, p)
}

// untag removes every tag of a snapshot, and thereby its image. The ID tag goes
// last: for as long as it is there, all of the snapshot is. The tag latest comes to none
// that is going, too.
func (rm *Remover) untag(ctx context.Context, s catalog.Snapshot, going catalog.IDSet) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var rollback dockerop.Rollback
	defer func() { rollback.Unless(ctx, &err) }()
	latest := catalog.LatestOf(s.Container.Name)
	hasLatest := slices.Contains(s.Refs, latest)
	if hasLatest {
		rollback.Add(func(ctx context.Context) error {
			others := maps.Clone(going)
			delete(others, s.ID)
			_, err := rm.catalog.SetLatest(ctx, s.Container.Name, others)
			return err
		})
		passed, err := rm.catalog.HandOverLatest(ctx, s, going)
		if err != nil {
			return err
		}
		hasLatest = !passed
	}
	for _, ref := range s.Refs {
		if ref == s.Ref() || ref == latest && !hasLatest {
			continue
		}
		if err := rm.untagOne(ctx, s, ref, &rollback); err != nil {
			return err
		}
	}
	if hasLatest { // somebody may have made the next one meanwhile, whose tag that was
		if _, err := rm.catalog.SetLatest(ctx, s.Container.Name, going); err != nil {
			return err
		}
	}
	return rm.untagOne(ctx, s, s.Ref(), &rollback)
}

func (rm *Remover) untagOne(ctx context.Context, s catalog.Snapshot, ref string, rollback *dockerop.Rollback) error {
	rollback.Add(func(ctx context.Context) error { return rm.docker.Retag(ctx, ref, s.ImageID) })
	if err := rm.docker.RemoveImage(ctx, ref); err != nil {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	return nil
}

// users lists, by the IDs of images, the names of the containers that were made from them.
func (rm *Remover) users(ctx context.Context) (map[string][]string, error) {
	all, err := rm.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	users := map[string][]string{}
	for _, c := range all {
		users[c.ImageID] = append(users[c.ImageID], dockerop.SummaryName(c))
	}
	for _, names := range users {
		slices.Sort(names)
	}
	return users, nil
}

// Options says how to remove snapshots.
type Options struct {
	Force bool // also pinned ones
}
