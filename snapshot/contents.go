package snapshot

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Contents returns what the two sides of a comparison have at one path in the container. It is an error if neither has
// anything.
func (e *Engine) Contents(ctx context.Context, o diff.Options, path string, p plan.Progress) (before, after extract.File, err error) {
	old, err := e.catalog.Resolve(ctx, o.Old)
	if err != nil {
		return before, after, err
	}
	if before, err = e.contentOf(ctx, old, path, p); err != nil {
		return before, after, err
	}
	if after, err = e.contentNow(ctx, old, o.New, path, p); err != nil {
		return before, after, err
	}
	if !before.IsThere && !after.IsThere {
		return before, after, &extract.NoPathError{Snapshot: old.ID, Name: old.Name, Path: path}
	}
	return before, after, nil
}

// ReadFile returns the content of one file of a snapshot, of at most [extract.MaxContent] bytes.
func (e *Engine) ReadFile(ctx context.Context, source extract.Source, p plan.Progress) ([]byte, error) {
	f, err := e.extract.Content(ctx, source, p)
	if err == nil && !f.IsThere {
		err = &extract.NoPathError{Snapshot: source.Snapshot.ID, Path: source.Path}
	}
	return f.Content, err
}

func (e *Engine) contentOf(ctx context.Context, s catalog.Snapshot, path string, p plan.Progress) (extract.File, error) {
	return e.extract.Content(ctx, extract.Source{Snapshot: s, Path: path}, p)
}

// contentNow reads the newer side: a container, a snapshot or, if word is empty, the container that old was taken of.
func (e *Engine) contentNow(ctx context.Context, old catalog.Snapshot, word, path string, p plan.Progress) (extract.File, error) {
	container := word
	if container == "" {
		container = old.Container.Name
	}
	found, err := e.docker.InspectIfThere(ctx, container)
	switch {
	case err != nil:
		return extract.File{}, err
	case found != nil:
		p.Status("copy", "reading a file of "+dockerop.ContainerName(*found))
		return e.extract.Live(ctx, found.ID, path)
	case word == "":
		return extract.File{}, &diff.GoneError{Container: container}
	}
	s, err := e.catalog.Resolve(ctx, word)
	if err != nil {
		return extract.File{}, err
	}
	return e.contentOf(ctx, s, path, p)
}
