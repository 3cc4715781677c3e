package snapshot

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/history"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// RestoresOf returns the restores of a snapshot that something is left of, the newest first.
func (e *Engine) RestoresOf(ctx context.Context, s catalog.Snapshot) ([]catalog.Restore, error) {
	return e.catalog.RestoresOf(ctx, s)
}

// History returns the snapshots of a container, the restores of these, and those into it, in the order in which they
// followed each other; of all containers, if none is named.
func (e *Engine) History(ctx context.Context, o catalog.ListOptions, p plan.Progress) (history.History, error) {
	var t catalog.Traces
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		t.Snapshots, err = e.List(callsCtx, o, p)
		return err
	})
	calls.Go(func() (err error) {
		t.Containers, err = e.docker.ContainerList(callsCtx, container.ListOptions{All: true})
		return dockerop.Describe(err, "list containers")
	})
	calls.Go(func() (err error) {
		t.Sessions, err = e.catalog.Sessions(callsCtx)
		return err
	})
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	known := map[labels.ID]bool{}
	for _, s := range t.Snapshots {
		known[s.ID] = true
	}
	restores := slices.DeleteFunc(t.Restores(), func(r catalog.Restore) bool { return !known[r.Snapshot] && r.Container != o.Container })
	return history.Of(t.Snapshots, restores, t.Containers), nil
}
