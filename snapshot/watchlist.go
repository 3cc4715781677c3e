package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// reconcile finds all containers that are to be watched.
func (w *watcher) reconcile(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	all, err := w.engine.docker.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	for _, id := range w.scheduler.Watched() {
		if !slices.ContainsFunc(all, func(c container.Summary) bool { return c.ID == id }) {
			w.forget(id)
		}
	}
	for _, c := range all {
		if err := w.consider(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// observe looks at one container, which is new or has changed.
func (w *watcher) observe(ctx context.Context, id string) error {
	ctx, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	found, err := w.engine.docker.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("id", id))})
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	for _, c := range found {
		if c.ID == id {
			return w.consider(ctx, c)
		}
	}
	return nil // it is gone already
}

// consider watches a container, if it is to be watched.
func (w *watcher) consider(ctx context.Context, c container.Summary) error {
	name := dockerop.SummaryName(c)
	if c.Labels[volumebackup.LabelPurpose] != "" || !w.wants(c.ID, name) {
		return nil
	}
	policy, err := w.options.When.Over(watch.TextsOf(c.Labels)).Parse()
	if err != nil {
		w.refuse(c.ID, name, fmt.Errorf("container %s: its labels cannot be read: %w", name, err))
		return nil
	}
	if policy.Never() || !w.isEnabled(c, name) || len(w.options.Containers) == 0 && watch.TextsOf(c.Labels) == (watch.Texts{}) {
		w.idle[name] = policy.Never()
		return nil
	}
	isNew := !w.scheduler.Knows(c.ID)
	watched := watch.Container{ID: c.ID, Name: name, Running: c.State == container.StateRunning || c.State == container.StatePaused, Policy: policy}
	if isNew && policy.Interval > 0 {
		if watched.Last, err = w.lastByInterval(ctx, name); err != nil {
			return err
		}
	}
	w.scheduler.Put(watched, w.engine.now())
	if isNew {
		w.tell(watch.Report{What: watch.Watching, Container: name, ContainerID: c.ID, Reason: policy.String()})
	}
	if policy.Memory > 0 && watched.Running {
		return w.meter(ctx, c.ID, name)
	}
	return nil
}

// isEnabled tells whether automatic snapshots of a container are taken at all.
func (w *watcher) isEnabled(c container.Summary, name string) bool {
	policy, wrong := w.options.Policy.ForContainer(c.Labels)
	if len(wrong) > 0 {
		w.refuse(c.ID, name, errors.Join(wrong...))
	}
	return policy.Enabled
}

// wants tells whether the user asked for this container.
func (w *watcher) wants(id, name string) bool {
	return len(w.options.Containers) == 0 || slices.ContainsFunc(w.options.Containers, func(word string) bool {
		return word == name || len(word) >= minIDPrefix && strings.HasPrefix(id, word)
	})
}

// minIDPrefix is how much of an ID has to be given: names may look like IDs.
const minIDPrefix = 12

// refuse warns, once, about the configuration of a container.
func (w *watcher) refuse(id, name string, err error) {
	if key := id + err.Error(); !w.refused[key] {
		w.refused[key] = true
		w.warn(name, id, err)
	}
}

// forget ends watching a container.
func (w *watcher) forget(id string) {
	w.unmeter(id)
	if w.scheduler.Knows(id) {
		w.tell(watch.Report{What: watch.Gone, Container: w.scheduler.Name(id), ContainerID: id})
		w.scheduler.Remove(id)
	}
}

// lastByInterval is when the container was last captured because time had passed.
func (w *watcher) lastByInterval(ctx context.Context, name string) (time.Time, error) {
	found, err := w.engine.catalog.List(ctx, catalog.ListOptions{Container: name}, nil)
	if err != nil {
		return time.Time{}, err
	}
	var last time.Time
	for _, s := range found {
		if s.Trigger == labels.TriggerInterval && s.Created.After(last) {
			last = s.Created
		}
	}
	return last, nil
}
