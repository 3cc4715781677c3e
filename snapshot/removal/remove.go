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

// Options says how to remove snapshots.
type Options struct {
	Force bool // also remove pinned ones
}

// Removal is the result for one of the words that [Remover.Remove] was given.
type Removal struct {
	Word     string
	Snapshot catalog.Snapshot // empty if the word names none
	Err      error            // nil: it was removed
}

// removals are the results for all words, in their order.
type removals []*Removal

// left returns those that have not failed so far.
func (all removals) left() removals {
	return slices.DeleteFunc(slices.Clone(all), func(r *Removal) bool { return r.Err != nil })
}

// snapshots returns the snapshot of each.
func (all removals) snapshots() []catalog.Snapshot {
	snapshots := make([]catalog.Snapshot, len(all))
	for i, r := range all {
		snapshots[i] = r.Snapshot
	}
	return snapshots
}

// Remove untags and deletes the snapshots that words name, and returns a result for each word. It
// goes on after a failure; then that snapshot is either whole again, or gone. Without Force it
// refuses pinned snapshots. A container that was made from a snapshot keeps the image's layers
// until it is removed. If the newest snapshot of a container is removed, the tag latest moves to
// the newest that is left.
func (rm *Remover) Remove(ctx context.Context, words []string, o Options, p plan.Progress) []Removal {
	early := rm.docker.AskInfoEarly(context.WithoutCancel(ctx))
	defer early.Stop()
	all := rm.chooseRemoved(ctx, words, o)
	rm.untagAll(ctx, all.left(), p)
	if gone := all.left(); len(gone) > 0 {
		rm.freeRemoved(context.WithoutCancel(ctx), gone, early, p)
	}
	rm.removeLost(ctx, all, o, p)
	results := make([]Removal, len(all))
	for i, r := range all {
		results[i] = *r
	}
	return results
}

// chooseRemoved finds the snapshots that words name, and fails those that must not be removed.
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
				r.Snapshot, r.Err = rm.resolve(ctx, word)
			}
			if r.Err == nil && r.Snapshot.Pinned && !o.Force {
				r.Err = &catalog.PinnedError{ID: r.Snapshot.ID, Name: r.Snapshot.Name}
			}
			return nil // the error is that word's alone
		})
	}
	_ = calls.Wait()
	chosen := map[string]bool{}
	for _, r := range all.left() {
		if chosen[r.Snapshot.ImageID] { // another word names the same snapshot
			r.Err = &catalog.NotFoundError{Word: r.Word}
		}
		chosen[r.Snapshot.ImageID] = true
	}
	return all
}

// resolve finds the snapshot that a word names, also one that has lost that name to an interrupted removal.
func (rm *Remover) resolve(ctx context.Context, word string) (catalog.Snapshot, error) {
	found, err := rm.catalog.ResolveOne(ctx, word)
	if !cerrdefs.IsNotFound(err) {
		return found, err
	}
	begun, noneBegun := rm.catalog.BeingRemoved(ctx, word)
	if noneBegun != nil {
		return found, err
	}
	return begun, nil
}

// manyWords is the number of words from which on it is faster to list all snapshots than to look up
// each.
const manyWords = 8

// listMany returns, if there are many words, all snapshots by their full IDs. An ID that two
// snapshots have is left empty. Words that it does not find have to be resolved one by one.
func (rm *Remover) listMany(ctx context.Context, words []string) map[string]catalog.Snapshot {
	if len(words) < manyWords {
		return nil
	}
	all, err := rm.catalog.Find(ctx, nil, catalog.Namespace+"*")
	if err != nil {
		return nil // resolving the words will fail, too, and say why
	}
	known := map[string]catalog.Snapshot{}
	for _, s := range all {
		id := string(s.ID)
		if _, twice := known[id]; twice {
			s = catalog.Snapshot{} // the ID is ambiguous
		}
		known[id] = s
	}
	return known
}

// untagAll removes the tags of the chosen snapshots, several at once. A snapshot whose container
// ran from another chosen one goes last, on its own: the engine that removes its image checks
// whether the one below it can go as well.
func (rm *Remover) untagAll(ctx context.Context, chosen removals, p plan.Progress) {
	if len(chosen) == 0 {
		return
	}
	users, err := rm.users(ctx)
	going, images := catalog.IDSet{}, map[string]bool{}
	for _, r := range chosen {
		r.Err = err
		going[r.Snapshot.ID] = true
		for _, id := range r.Snapshot.Images() {
			images[id] = true
		}
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
			r.Err = rm.untag(ctx, r.Snapshot, going, users)
			return nil // the error is that snapshot's alone
		})
	}
	_ = calls.Wait()
	for _, r := range last {
		r.Err = rm.untag(ctx, r.Snapshot, going, users)
	}
	rm.keepLatest(ctx, chosen, p)
	for _, r := range chosen.left() {
		if names := usersOf(r.Snapshot, users); len(names) > 0 {
			p.Warn("remove", fmt.Sprintf("the layers of %s stay: the next rm, prune or recover after the removal of %s frees them", r.Snapshot.Title(), describeUsers(names)))
		}
	}
}

// keepLatest gives the tag latest back to the newest snapshot of each container for which removing
// one has failed.
func (rm *Remover) keepLatest(ctx context.Context, chosen removals, p plan.Progress) {
	ctx, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	done := map[string]bool{}
	for _, r := range chosen {
		name := r.Snapshot.Container.Name
		if r.Err == nil || done[name] || len(chosen) == 1 { // a single one has rolled itself back
			continue
		}
		done[name] = true
		if _, err := rm.catalog.SetLatest(ctx, name, nil); err != nil {
			p.Warn("remove", fmt.Sprintf("the tag latest of container %s may not be on its newest snapshot: %v", name, err))
		}
	}
}

// freeRemoved frees what stores keep for snapshots whose images are gone, and sweeps what
// interrupted commands have left. It returns how many bytes the stores have freed.
func (rm *Remover) freeRemoved(ctx context.Context, gone removals, early dockerop.EarlyInfo, p plan.Progress) (freed int64) {
	var known *dockerop.Info
	engine, err := early.Info()
	if err == nil {
		known = &engine
	}
	failed, freed := rm.archives.Remove(ctx, gone.snapshots(), known, p)
	var busy []string
	var inUse error
	for _, r := range gone {
		r.Err = failed[r.Snapshot.ID]
		if cerrdefs.IsConflict(r.Err) { // others keep the store busy
			busy, inUse = append(busy, string(r.Snapshot.ID)), r.Err
			r.Err = nil
		}
	}
	if len(busy) > 0 {
		p.Warn("remove", fmt.Sprintf("the next removal frees the space of %s: %v", strings.Join(busy, ", "), inUse))
	}
	if err != nil {
		p.Warn("sweep", "leftovers of interrupted commands were not removed: "+err.Error())
		return freed
	}
	rm.SweepOrphans(ctx, engine, p)
	return freed
}

// untag removes every tag of a snapshot, and with the last one its image. The ID tag goes last:
// while it is there, the snapshot is whole. The snapshots in going do not get the tag latest. An image that
// a container uses gets another tag, so that a sweep finds it.
func (rm *Remover) untag(ctx context.Context, s catalog.Snapshot, going catalog.IDSet, users map[string][]string) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s, err = rm.catalog.WithFormerTags(ctx, s); err != nil {
		return err
	}
	end, err := rm.catalog.BeginRemoval(ctx, s)
	if err != nil {
		return err
	}
	defer end()
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
	if hasLatest { // somebody may have made a newer one meanwhile, whose tag that was
		if _, err := rm.catalog.SetLatest(ctx, s.Container.Name, going); err != nil {
			return err
		}
	}
	if err := rm.markRemoved(ctx, s, users, &rollback); err != nil {
		return err
	}
	return rm.untagOne(ctx, s, s.Ref(), &rollback)
}

// markRemoved tags the images of a snapshot that containers use, so that [Remover.sweepRemoved] frees them later.
func (rm *Remover) markRemoved(ctx context.Context, s catalog.Snapshot, users map[string][]string, rollback *dockerop.Rollback) error {
	for _, id := range s.Images() {
		if len(users[id]) == 0 {
			continue
		}
		ref := catalog.RemovedTag(id)
		rollback.Add(func(ctx context.Context) error { return rm.docker.RemoveImage(ctx, ref) })
		if err := rm.docker.Tag(ctx, id, ref); err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("tag image %s: %w", ref, err)
		}
	}
	return nil
}

func (rm *Remover) untagOne(ctx context.Context, s catalog.Snapshot, ref string, rollback *dockerop.Rollback) error {
	rollback.Add(func(ctx context.Context) error { return rm.docker.Retag(ctx, ref, s.ImageID) })
	if err := rm.docker.RemoveImage(ctx, ref); err != nil {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	return nil
}

func describeUsers(names []string) string {
	if len(names) == 1 {
		return "container " + names[0]
	}
	return "containers " + strings.Join(names, ", ")
}

// usersOf returns the names of the containers that were made from a snapshot.
func usersOf(s catalog.Snapshot, users map[string][]string) []string {
	var names []string
	for _, id := range s.Images() {
		names = append(names, users[id]...)
	}
	slices.Sort(names)
	return names
}

// users returns the names of the containers that were made from each image, by image ID.
func (rm *Remover) users(ctx context.Context) (map[string][]string, error) {
	all, err := rm.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return usersByImage(all), nil
}

// usersByImage returns the names of the containers that were made from each image, by image ID.
func usersByImage(all []container.Summary) map[string][]string {
	users := map[string][]string{}
	for _, c := range all {
		users[c.ImageID] = append(users[c.ImageID], dockerop.SummaryName(c))
	}
	for _, names := range users {
		slices.Sort(names)
	}
	return users
}
