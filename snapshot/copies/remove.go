package copies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Removed says which copies of one snapshot were removed.
type Removed struct {
	Word       string // that named the snapshot
	ID         labels.ID
	Containers []string // names of those that were removed
	Volumes    []string // the same; anonymous ones, which went with their containers, are not listed
	Err        error
}

// InUseError means that copies of a snapshot cannot be removed, because something uses them.
type InUseError struct {
	Snapshot   labels.ID
	Containers []string // copies that run
	Volumes    []string // volumes of copies that other containers mount, with the names of these
}

func (e *InUseError) Error() string {
	var why []string
	for _, name := range e.Containers {
		why = append(why, "container "+name+" is running")
	}
	return fmt.Sprintf("copies of snapshot %s are in use: %s", e.Snapshot, strings.Join(append(why, e.Volumes...), ", "))
}

// RemoveCopies removes the containers and volumes that restores have made of each snapshot that a
// word names, and leaves the snapshots alone. Without force it removes nothing of a snapshot of which
// a copy runs, or whose copies' volumes other containers mount; with force it keeps only the latter.
// A snapshot that is gone may be named by its ID.
func (cp *Copier) RemoveCopies(ctx context.Context, words []string, force bool, p plan.Progress) []Removed {
	results := make([]Removed, len(words))
	for i, word := range words {
		results[i] = cp.removeCopiesOf(ctx, word, force, p)
	}
	return results
}

func (cp *Copier) removeCopiesOf(ctx context.Context, word string, force bool, p plan.Progress) (r Removed) {
	r.Word = word
	if r.ID, r.Err = cp.idOf(ctx, word); r.Err != nil {
		return r
	}
	p.Status("check", "looking for copies of "+string(r.ID))
	found, err := cp.findCopies(ctx, r.ID)
	if err != nil {
		r.Err = err
		return r
	}
	kept := found.foreignUsers()
	if used := found.inUse(r.ID, kept); used != nil && !force {
		r.Err = used
		return r
	}
	for name, users := range kept {
		p.Warn("remove", fmt.Sprintf("volume %s stays: container %s mounts it", name, strings.Join(users, ", ")))
	}
	cp.removeFound(ctx, found, kept, &r, p)
	return r
}

// idOf returns the ID of the snapshot that a word names, which may be gone if the word is its ID.
func (cp *Copier) idOf(ctx context.Context, word string) (labels.ID, error) {
	s, err := cp.catalog.ResolveOne(ctx, word)
	if _, isGone := errors.AsType[*catalog.NotFoundError](err); isGone {
		if id, notID := labels.ParseID(word); notID == nil {
			return id, nil
		}
	}
	return s.ID, err
}

// foundCopies are the copies of a snapshot, and what else is there.
type foundCopies struct {
	copies  []container.Summary
	volumes []string
	others  []container.Summary // all containers that are no such copies
}

// findCopies finds the copies of a snapshot. It fails if one is being made.
func (cp *Copier) findCopies(ctx context.Context, id labels.ID) (foundCopies, error) {
	var all []container.Summary
	var made volume.ListResponse
	var filling map[string]bool
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		all, err = cp.docker.ContainerList(callsCtx, container.ListOptions{All: true})
		return dockerop.Describe(err, "list containers")
	})
	calls.Go(func() (err error) {
		made, err = cp.docker.VolumeList(callsCtx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labels.KeyRestoredFrom+"="+string(id)))})
		return dockerop.Describe(err, "list volumes")
	})
	calls.Go(func() (err error) {
		filling, err = cp.fillingOperations(callsCtx)
		return err
	})
	if err := calls.Wait(); err != nil {
		return foundCopies{}, err
	}
	var f foundCopies
	for _, v := range made.Volumes {
		if operation := v.Labels[labels.KeyOperation]; filling[operation] {
			return foundCopies{}, fmt.Errorf("a copy of snapshot %s is being made: %w", id, cerrdefs.ErrConflict)
		}
		f.volumes = append(f.volumes, v.Name)
	}
	slices.Sort(f.volumes)
	for _, c := range all {
		isCopy, err := cp.isCopyOf(ctx, c, id)
		if err != nil {
			return foundCopies{}, err
		}
		if !isCopy {
			f.others = append(f.others, c)
			continue
		}
		if operation, _ := madeBy(c); filling[operation] {
			return foundCopies{}, fmt.Errorf("a copy of snapshot %s is being made: %w", id, cerrdefs.ErrConflict)
		}
		f.copies = append(f.copies, c)
	}
	return f, nil
}

// isCopyOf tells whether a restore has made a container of a snapshot. A container that somebody made
// of a copy's image (docker commit) has inherited the copy's label.
func (cp *Copier) isCopyOf(ctx context.Context, c container.Summary, id labels.ID) (bool, error) {
	if c.Labels[labels.KeyCopyOf] != string(id) {
		return false, nil
	}
	found, err := cp.docker.InspectIfThere(ctx, c.ID)
	if err != nil || found == nil {
		return false, err
	}
	return strings.HasPrefix(found.Config.Image, catalog.Namespace) && strings.HasSuffix(found.Config.Image, ":"+string(id)), nil
}

// foreignUsers returns the volumes that containers mount that are no copies, with their names.
func (f foundCopies) foreignUsers() map[string][]string {
	users := map[string][]string{}
	for _, c := range f.others {
		for _, m := range c.Mounts {
			if m.Type == mount.TypeVolume && slices.Contains(f.volumes, m.Name) {
				users[m.Name] = append(users[m.Name], dockerop.SummaryName(c))
			}
		}
	}
	return users
}

// inUse returns why copies cannot be removed without force, or nil.
func (f foundCopies) inUse(id labels.ID, kept map[string][]string) error {
	used := &InUseError{Snapshot: id}
	for _, c := range f.copies {
		if c.State == container.StateRunning || c.State == container.StatePaused || c.State == container.StateRestarting {
			used.Containers = append(used.Containers, dockerop.SummaryName(c))
		}
	}
	slices.Sort(used.Containers)
	for _, name := range f.volumes {
		if users := kept[name]; len(users) > 0 {
			used.Volumes = append(used.Volumes, fmt.Sprintf("volume %s is mounted by container %s", name, strings.Join(users, ", ")))
		}
	}
	if len(used.Containers)+len(used.Volumes) == 0 {
		return nil
	}
	return used
}

// removeFound removes copies and then their volumes, except those in kept. It goes on after an error.
func (cp *Copier) removeFound(ctx context.Context, f foundCopies, kept map[string][]string, r *Removed, p plan.Progress) {
	slices.SortFunc(f.copies, func(a, b container.Summary) int {
		return strings.Compare(dockerop.SummaryName(a), dockerop.SummaryName(b))
	})
	for _, c := range f.copies {
		name := dockerop.SummaryName(c)
		p.Status("remove", "removing container "+name)
		if err := cp.docker.RemoveContainer(ctx, c.ID); err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("remove container %s: %w", name, err))
			continue
		}
		r.Containers = append(r.Containers, name)
	}
	for _, name := range f.volumes {
		if len(kept[name]) > 0 {
			continue
		}
		if err := cp.docker.VolumeRemove(ctx, name, false); err != nil && !cerrdefs.IsNotFound(err) {
			r.Err = errors.Join(r.Err, fmt.Errorf("remove volume %s: %w", name, err))
			continue
		}
		r.Volumes = append(r.Volumes, name)
	}
}
