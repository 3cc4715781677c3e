package dockerop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// commitTries is how often [Engine.Commit] tries before it gives up. In between it waits for up to commitPause, twice as long
// each time, and commitPauseMost at most: eight seconds together.
const (
	commitTries     = 20
	commitPause     = 20 * time.Millisecond
	commitPauseMost = time.Second
)

// Commit makes an image of the container's filesystem and returns its ID. It is untagged unless the options have a reference.
//
// An engine does not stop a commit when its client goes away. So after a cancellation Commit waits
// for the answer, for 20 seconds at most, and removes the image.
//
// Some engines with the containerd image store cannot commit two containers of one image at the same time (moby issue 44450):
// the second commit fails with an internal error that says "already exists", and Commit tries again. How long it waits is
// left to chance, so that many that began together do not meet again.
func (e *Engine) Commit(ctx context.Context, id string, options container.CommitOptions) (string, error) {
	return e.CommitWatched(ctx, id, options, func() {})
}

// CommitWatched does the same, and calls again before each other try: the engine has thawed the container in between, if it froze it.
func (e *Engine) CommitWatched(ctx context.Context, id string, options container.CommitOptions, again func()) (string, error) {
	pause := commitPause
	for n := 1; ; n++ {
		made, err := e.commitOnce(ctx, id, options)
		if err == nil || n == commitTries || !strings.Contains(err.Error(), "already exists") {
			return made, err
		}
		select {
		case <-time.After(rand.N(pause)): //nolint:gosec // no secret
		case <-ctx.Done():
			return "", err
		}
		pause = min(2*pause, commitPauseMost) //nolint:mnd // as said above
		again()
	}
}

func (e *Engine) commitOnce(ctx context.Context, id string, options container.CommitOptions) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	var made string
	c := startCall(func() error {
		response, err := e.ContainerCommit(context.WithoutCancel(ctx), id, options)
		made = response.ID
		return AsFull(err)
	})
	help := startCall(func() error { return e.unstickCommit(context.WithoutCancel(ctx), id, options, c) })
	select {
	case <-c.over:
		if c.err != nil && options.Reference == "" { // a tagged one is found by its tag
			return "", errors.Join(c.err, e.removeUnansweredCommit(ctx, c.err, options))
		}
		<-help.over
		if c.err == nil && errors.Is(help.err, ErrRan) {
			return "", errors.Join(ErrRan, e.RemoveImage(ctx, made))
		}
		return made, c.err // what else helping has failed with shows in the container's state
	case <-ctx.Done():
	}
	if c.within(context.WithoutCancel(ctx), cleanupTimeout) && c.err == nil {
		<-help.over
		after, cancel := Cleanup(ctx)
		defer cancel()
		if err := e.RemoveImage(after, made); err != nil {
			return "", fmt.Errorf("remove unfinished image: %w", err)
		}
	}
	return "", context.Cause(ctx)
}

// ErrRan says that a frozen container had to run during its commit, because the engine was stuck.
var ErrRan = errors.New("the engine was stuck until a frozen container ran")

// unstickCommit helps an engine that is stuck with a container while it commits that: in the thaw at the
// end, or before it begins if the container was frozen already. In the second case it returns [ErrRan].
func (e *Engine) unstickCommit(ctx context.Context, id string, options container.CommitOptions, c *call) error {
	t := e.thawer()
	for wasThere := false; !c.within(ctx, stuckAfter); {
		if !options.Pause {
			if e.isStuck(ctx, id) {
				return t.commitPast(ctx, id, c)
			}
			continue
		}
		found, err := e.committed(ctx, options)
		if err == nil && len(found) > 0 && wasThere { // the image is there, and the answer does not come
			return t.unstick(ctx, id, c)
		}
		wasThere = len(found) > 0
	}
	return nil
}

// isStuck tells whether the engine does not say what a container is.
func (e *Engine) isStuck(ctx context.Context, id string) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	look := startCall(func() error {
		_, _, err := e.ContainerInspectWithRaw(ctx, id, false)
		return err
	})
	return !look.within(ctx, stuckAfter)
}

// commitPast lets the engine go on with the commit of a frozen container.
func (t thawer) commitPast(ctx context.Context, id string, c *call) error {
	past, err := t.open(ctx)
	if err != nil {
		return c.waitAnyway(ctx, err)
	}
	defer func() { _ = past.Close() }()
	_, err = t.letPass(ctx, past, id, c)
	return errors.Join(ErrRan, err)
}

// committed lists the images that a commit has made: their labels hold the ID of its snapshot.
func (e *Engine) committed(ctx context.Context, options container.CommitOptions, more ...filters.KeyValuePair) ([]image.Summary, error) {
	own := options.Config.Labels
	return e.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(append(more,
		filters.Arg("label", labels.KeyID+"="+own[labels.KeyID]),
		filters.Arg("label", labels.KeyUpdated+"="+own[labels.KeyUpdated]), // not one that it was before it was annotated
	)...)})
}

// removeUnansweredCommit removes the image of a commit that succeeded although the call failed: the
// connection may break before the answer comes. The image has no tag, and its label holds the ID of
// this snapshot.
func (e *Engine) removeUnansweredCommit(ctx context.Context, failure error, options container.CommitOptions) error {
	id := options.Config.Labels[labels.KeyID]
	if cerrdefs.IsConflict(failure) || cerrdefs.IsNotFound(failure) || cerrdefs.IsInvalidArgument(failure) || id == "" {
		return nil // the engine has answered: it made nothing
	}
	ctx, cancel := Cleanup(ctx)
	defer cancel()
	return insist(ctx, func(ctx context.Context) error {
		made, err := e.committed(ctx, options, filters.Arg("dangling", "true"))
		for _, summary := range made {
			err = errors.Join(err, e.RemoveImage(ctx, summary.ID))
		}
		return Describe(err, "look for an image that the engine may have committed")
	}, nil)
}
