package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// errThawed means that somebody else thawed a frozen container too early.
var errThawed = errors.New("a frozen container was thawed by somebody else")

// How often the containers are frozen again: after somebody else thawed one, which makes the
// whole pass useless, and after somebody else had paused one.
const (
	freezeAttempts = 6
	pausedAttempts = 50
)

// readUndisturbed makes the last pass and the image. It does both again if a
// container did not stand still meanwhile; the image is made anew.
func (r *volumeCapture) readUndisturbed(ctx context.Context) (imageID string, err error) {
	for thaws, pauses := 0, 0; ; {
		who, err := r.look(ctx) // reading, or waiting, may have taken minutes
		if err != nil {
			return "", err
		}
		if who.joined(r.before) && !r.last { // whoever is frozen has to be in the journal
			return "", errJoined
		}
		made, err := r.readFrozen(ctx, who)
		paused, isPaused := errors.AsType[*dockerop.PausedError](err)
		if isPaused {
			pauses++
		} else {
			thaws++
		}
		switch {
		case err == nil, r.stuck, !isPaused && !errors.Is(err, errThawed):
			return made, err
		case pauses == pausedAttempts:
			return "", err
		case thaws == freezeAttempts:
			r.lost = true
			r.p.Warn("volumes", errThawed.Error()+" again and again: what is captured may be torn")
			return made, nil
		}
		if made != "" {
			if err := r.engine.docker.RemoveImage(ctx, made); err != nil {
				return made, fmt.Errorf("remove unfinished image: %w", err)
			}
		}
		if err := r.prepareAgain(ctx, paused); err != nil {
			return "", err
		}
	}
}

// prepareAgain waits until a container runs that somebody else paused, or reads what changed
// meanwhile.
func (r *volumeCapture) prepareAgain(ctx context.Context, paused *dockerop.PausedError) error {
	if paused == nil {
		r.p.Status("volumes", errThawed.Error()+": reading them again")
		return r.passLive(ctx)
	}
	runs, err := r.engine.awaitThaw(ctx, paused.Container, r.p)
	switch {
	case err != nil:
		return err
	case runs: // at once, before it is paused again
		return nil
	case paused.Container == r.from.Container.ID:
		return pending.ErrMoved // its snapshot is that of a paused container
	}
	r.leave = append(r.leave, paused.Container)
	return nil
}

// otherPause is how long to wait for a container that somebody else paused: most likely the engine,
// which is committing it. A container that stays paused was paused by its user.
const otherPause = 10 * time.Second

// awaitThaw waits up to otherPause for a container to run, and tells whether it does.
func (cr *Capturer) awaitThaw(ctx context.Context, id string, p plan.Progress) (runs bool, err error) {
	p.Status("freeze", fmt.Sprintf("waiting for container %s, which somebody else has paused", dockerop.Shorten(id)))
	deadline := cr.now().Add(otherPause)
	err = dockerop.Poll(ctx, func() (bool, error) {
		c, err := cr.docker.InspectIfThere(ctx, id)
		if err != nil {
			return false, err
		}
		runs = c == nil || !c.State.Paused
		return runs || cr.now().After(deadline), nil
	})
	return runs, err
}

// readFrozen is the part that ends with the image committed and all thawed. It is an
// [errThawed], with an image, if somebody let a container run meanwhile.
func (r *volumeCapture) readFrozen(ctx context.Context, who writers) (imageID string, err error) {
	if r.Quiesce != nil {
		if err := r.Quiesce(ctx); err != nil {
			return "", err
		}
		return r.readStill(ctx, who)
	}
	watched := who.all()
	if len(watched) == 0 {
		return r.readStill(ctx, who)
	}
	watch := r.engine.docker.WatchThaws(ctx)
	defer watch.Stop()
	frozen, err := r.freeze(ctx, who.running)
	if err == nil {
		imageID, err = r.readStill(ctx, who)
	}
	thawErr := frozen.thaw(ctx)
	r.frozen += frozen.lasted
	if thawErr != nil {
		r.stuck = true
		return imageID, errors.Join(err, thawErr)
	}
	if err != nil {
		return imageID, err
	}
	heard, err := watch.UntilCommit(ctx, r.options.Comment)
	if err != nil {
		return imageID, err
	}
	if frozen.early || slices.ContainsFunc(watched, func(id string) bool { return slices.Contains(heard.Ran, id) }) {
		return imageID, errThawed
	}
	return imageID, nil
}

func (r *volumeCapture) freeze(ctx context.Context, running []string) (*frozen, error) {
	if len(running) > 0 {
		what := "the container"
		if len(running) > 1 {
			what = fmt.Sprintf("%d containers", len(running))
		}
		r.p.Status("freeze", "freezing "+what)
	}
	return r.engine.freeze(ctx, running)
}
