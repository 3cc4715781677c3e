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

// readUndisturbed makes the last pass and the images. It does both again if a
// container did not stand still meanwhile; the images are made anew.
func (r *attempt) readUndisturbed(ctx context.Context) error {
	for thaws, pauses := 0, 0; ; {
		who, err := r.look(ctx) // reading, or waiting, may have taken minutes
		if err != nil {
			return err
		}
		if who.joined(r.before) && !r.last { // whoever is frozen has to be in the journal
			return errJoined
		}
		err = r.readFrozen(ctx, who)
		paused, isPaused := errors.AsType[*dockerop.PausedError](err)
		if isPaused {
			pauses++
		} else {
			thaws++
		}
		switch {
		case err == nil, r.stuck, !isPaused && !errors.Is(err, errThawed):
			return err
		case pauses == pausedAttempts:
			return err
		case thaws == freezeAttempts:
			r.warnTorn(errThawed.Error() + " again and again")
			return nil
		}
		if err := r.dropImages(ctx); err != nil {
			return fmt.Errorf("remove unfinished image: %w", err)
		}
		if err := r.prepareAgain(ctx, paused); err != nil {
			return err
		}
	}
}

// prepareAgain waits until a container runs that somebody else paused, or reads what changed
// meanwhile.
func (r *attempt) prepareAgain(ctx context.Context, paused *dockerop.PausedError) error {
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
	case slices.Contains(r.containers(), paused.Container):
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

// readFrozen is the part that ends with the images committed and all thawed. It is an
// [errThawed], with the images, if somebody let a container run meanwhile.
func (r *attempt) readFrozen(ctx context.Context, who writers) error {
	if r.Quiesce != nil {
		if err := r.quiesce(ctx); err != nil {
			return err
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
		// Who gives up keeps nobody frozen until the engine has ended a commit.
		stop := context.AfterFunc(ctx, func() { _ = frozen.thaw(ctx) })
		err = r.readStill(ctx, who)
		stop()
	}
	thawErr := frozen.thaw(ctx)
	r.stood.add(frozen, r.read)
	if err == nil && ctx.Err() != nil { // perhaps it was thawed too early
		err = context.Cause(ctx)
	}
	if thawErr != nil {
		r.stuck = true
		return errors.Join(err, thawErr)
	}
	if errors.Is(err, dockerop.ErrRan) {
		return errThawed
	}
	if err != nil {
		return err
	}
	heard, err := watch.UntilCommit(ctx, r.comments()...)
	if err != nil {
		return err
	}
	if frozen.early || slices.ContainsFunc(watched, func(id string) bool { return slices.Contains(heard.Ran, id) }) {
		return errThawed
	}
	return nil
}

// comments are those of the commits.
func (a *taking) comments() []string {
	var all []string
	for _, one := range a.parts {
		all = append(all, one.comment())
	}
	return all
}

func (r *attempt) freeze(ctx context.Context, running []string) (*frozen, error) {
	if len(running) > 0 {
		what := "the container"
		if len(running) > 1 {
			what = fmt.Sprintf("%d containers", len(running))
		}
		r.p.Status("freeze", "freezing "+what)
	}
	return r.engine.freeze(ctx, running)
}
