package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// ListOptions says which snapshots to list, and in which order.
type ListOptions struct {
	Container string // name or ID of a container; empty: all
	Filter    Filter
	Search    string // a part of the name or description, in any case
	Sort      Sort
	Reverse   bool
	Last      int // at most this many; 0: all
}

// Sort is the order of a list.
type Sort string

// The orders: newest, largest or alphabetically first.
const (
	SortCreated Sort = "created"
	SortSize    Sort = "size"
	SortName    Sort = "name"
)

// List returns the snapshots that match, with one engine call. It warns of images with the ID tag
// of a snapshot whose labels cannot be read. Images that only inherited our labels are no
// snapshots.
func (cat *Catalog) List(ctx context.Context, o ListOptions, p plan.Progress) ([]Snapshot, error) {
	found, _, err := cat.ListBeside(ctx, o, "", p)
	return found, err
}

// ListBeside does the same, and tells with the same engine call whether there is an image in a repository that is not
// one of snapshots, in [Namespace]. It tells that also if no snapshot is found.
func (cat *Catalog) ListBeside(ctx context.Context, o ListOptions, repository string, p plan.Progress) (found []Snapshot, isThere bool, err error) {
	patterns := []string{Namespace + "*"}
	if o.Container != "" {
		if !labels.IsContainerName(o.Container) {
			return nil, false, fmt.Errorf("invalid container name %q", o.Container)
		}
		if !IsContainerID(o.Container) {
			patterns = []string{Repository(o.Container)}
			if repository != "" {
				patterns = append(patterns, repository)
			}
		}
	}
	images, err := cat.ListImages(ctx, patterns...)
	if err != nil {
		return nil, false, err
	}
	isThere = slices.ContainsFunc(images, func(one image.Summary) bool {
		return one.Labels[labels.KeyID] == "" && slices.ContainsFunc(one.RepoTags, func(ref string) bool { return strings.HasPrefix(ref, repository+":") })
	})
	all, unreadable := decodeAll(images)
	warnUnreadable(unreadable, p)
	if err := cat.checkListed(ctx, o.Container, all); err != nil {
		return nil, isThere, err
	}
	found, err = o.Choose(all)
	return found, isThere, err
}

// Choose returns those of a list that match, in the order that is asked for.
func (o ListOptions) Choose(all []Snapshot) ([]Snapshot, error) {
	found, err := o.Filter.Apply(all)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(s Snapshot) bool {
		return !s.contains(o.Search) || o.Container != "" && !isContainer(s.Container, o.Container)
	})
	o.sort(found)
	if o.Last > 0 && len(found) > o.Last {
		found = found[:o.Last]
	}
	return found, nil
}

// checkListed fails for a container that neither exists nor has a snapshot among all.
func (cat *Catalog) checkListed(ctx context.Context, name string, all []Snapshot) error {
	if name == "" || slices.ContainsFunc(all, func(s Snapshot) bool { return isContainer(s.Container, name) }) {
		return nil
	}
	if c, err := cat.docker.InspectIfThere(ctx, name); c != nil || err != nil {
		return err
	}
	return &NotFoundError{Word: name, Reason: fmt.Sprintf("no container %s, and no snapshot of one", name)}
}

// IsContainerID tells whether a word may be the ID of a container, or the beginning that docker ps
// shows. The snapshots of an ID are found by their labels, because the container may have had any
// name.
func IsContainerID(word string) bool { return labels.IsDigits(word, dockerop.ShortID, dockerop.FullID) }

// contains tells whether the name or description contains text, in any case.
func (s Snapshot) contains(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(strings.ToLower(s.Name), text) || strings.Contains(strings.ToLower(s.Description), text)
}

func (o ListOptions) sort(list []Snapshot) {
	order := newestFirst
	switch o.Sort {
	case SortSize:
		order = func(a, b Snapshot) int {
			return cmp.Or(cmp.Compare(b.StoredBytes(), a.StoredBytes()), newestFirst(a, b))
		}
	case SortName:
		order = func(a, b Snapshot) int { return cmp.Or(strings.Compare(a.Name, b.Name), newestFirst(a, b)) }
	case SortCreated:
	}
	slices.SortFunc(list, order)
	if o.Reverse {
		slices.Reverse(list)
	}
}

// Find returns the snapshots among the images whose references match one of the patterns, newest
// first, with one engine call.
func (cat *Catalog) Find(ctx context.Context, p plan.Progress, patterns ...string) ([]Snapshot, error) {
	snapshots, unreadable, err := cat.FindAll(ctx, patterns...)
	warnUnreadable(unreadable, p)
	return snapshots, err
}

func warnUnreadable(unreadable []Unreadable, p plan.Progress) {
	for _, u := range unreadable {
		p.Warn("list", fmt.Sprintf("image %s is not listed because its labels cannot be read: %v", strings.Join(u.Refs, ", "), u.Err))
	}
}

// Unreadable is an image with the ID tag of a snapshot whose labels cannot be read, or are another one's.
type Unreadable struct {
	Refs []string
	Err  error
}

// FindAll does the same as [Catalog.Find], and returns what cannot be read instead of warning.
func (cat *Catalog) FindAll(ctx context.Context, patterns ...string) (snapshots []Snapshot, unreadable []Unreadable, err error) {
	images, err := cat.ListImages(ctx, patterns...)
	if err != nil {
		return nil, nil, err
	}
	snapshots, unreadable = decodeAll(images)
	return snapshots, unreadable, nil
}

// decodeAll returns the snapshots among images, newest first.
func decodeAll(images []image.Summary) (snapshots []Snapshot, unreadable []Unreadable) {
	names := map[string]string{}
	former := map[string][]string{} // tags of images that are no snapshot, or not any more
	for _, summary := range images {
		s, err := decode(summary.ID, summary.RepoTags, summary.Labels)
		if err == nil || errors.Is(err, labels.ErrAbsent) {
			unreadable = append(unreadable, displaced(s, summary.RepoTags)...)
		}
		switch {
		case err == nil:
			snapshots = append(snapshots, s)
			names[s.ImageID] = summary.Labels[labels.KeyName]
		case errors.Is(err, labels.ErrAbsent) && summary.Labels[labels.KeyID] != "":
			former[summary.ID] = summary.RepoTags
		case !errors.Is(err, labels.ErrAbsent):
			unreadable = append(unreadable, Unreadable{Refs: summary.RepoTags, Err: err})
		}
	}
	for i := range snapshots {
		snapshots[i].takeFormer(former, names[snapshots[i].ImageID])
	}
	slices.SortFunc(snapshots, newestFirst)
	return snapshots, unreadable
}

// ListImages returns the images whose references match one of the patterns.
func (cat *Catalog) ListImages(ctx context.Context, patterns ...string) ([]image.Summary, error) {
	args := filters.NewArgs()
	for _, pattern := range patterns {
		args.Add("reference", pattern)
	}
	images, err := cat.docker.ImageList(ctx, image.ListOptions{Filters: args})
	if err != nil {
		return nil, fmt.Errorf("list images %s: %w", patterns[0], err)
	}
	return images, nil
}

func newestFirst(a, b Snapshot) int {
	return cmp.Or(b.Created.Compare(a.Created), strings.Compare(string(b.ID), string(a.ID)))
}
