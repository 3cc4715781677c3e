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

// List returns the snapshots that match, in one engine call. An image that has our labels
// but cannot be read is warned about; one that only inherited them is not a snapshot.
func (cat *Catalog) List(ctx context.Context, o ListOptions, p plan.Progress) ([]Snapshot, error) {
	pattern := Namespace + "*"
	if o.Container != "" {
		if !labels.IsContainerName(o.Container) {
			return nil, fmt.Errorf("invalid container name %q", o.Container)
		}
		if !IsContainerID(o.Container) {
			pattern = Repository(o.Container)
		}
	}
	all, err := cat.Find(ctx, p, pattern)
	if err != nil {
		return nil, err
	}
	if err := cat.checkListed(ctx, o.Container, all); err != nil {
		return nil, err
	}
	found, err := o.Filter.apply(all)
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

// checkListed fails for a container that is neither there nor has snapshots among all.
func (cat *Catalog) checkListed(ctx context.Context, name string, all []Snapshot) error {
	if name == "" || slices.ContainsFunc(all, func(s Snapshot) bool { return isContainer(s.Container, name) }) {
		return nil
	}
	if c, err := cat.docker.InspectIfThere(ctx, name); c != nil || err != nil {
		return err
	}
	return &NotFoundError{Word: name, Reason: fmt.Sprintf("no container %s, and no snapshot of one", name)}
}

// IsContainerID tells whether a word may be the ID of a container, or the beginning
// that docker ps shows. Its snapshots are found by their labels, whatever its name was.
func IsContainerID(word string) bool { return labels.IsDigits(word, dockerop.ShortID, dockerop.FullID) }

// contains looks for text in what people wrote, in any case.
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

// Find returns the snapshots among the images whose references match one of the
// patterns, newest first. It is one engine call.
func (cat *Catalog) Find(ctx context.Context, p plan.Progress, patterns ...string) ([]Snapshot, error) {
	images, err := cat.ListImages(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	var snapshots []Snapshot
	for _, summary := range images {
		s, err := decode(summary.ID, summary.RepoTags, summary.Labels)
		switch {
		case err == nil:
			snapshots = append(snapshots, s)
		case !errors.Is(err, labels.ErrAbsent):
			p.Warn("list", fmt.Sprintf("image %s is not listed, its labels cannot be read: %v", strings.Join(summary.RepoTags, ", "), err))
		}
	}
	slices.SortFunc(snapshots, newestFirst)
	return snapshots, nil
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
