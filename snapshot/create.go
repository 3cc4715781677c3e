package snapshot

import (
	"context"
	"errors"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Create takes a snapshot of a container and returns it. Whatever happens, the
// container is afterwards what it was before: running, paused or stopped.
// Until the ID tag is set there is no snapshot; on an error nothing is left. A snapshot
// of a run that has a session gets a number, and is listed there. If no snapshot is due by the usage in
// the options, it says why.
func (e *Engine) Create(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error) {
	if o.Usage != nil {
		if err := o.Check(); err != nil {
			return capture.Created{}, err
		}
		reason, err := e.capture.Skip(ctx, o, p)
		if err != nil || reason != "" {
			return capture.Created{Skipped: reason}, err
		}
	}
	created, err := e.keeper.Number(ctx, o, p, e.createOne)
	if late, ok := errors.AsType[*capture.NotDueError](err); ok {
		return capture.Created{Skipped: late.Reason}, nil
	}
	return created, err
}

// CreateTogether takes snapshots of several containers, all of one moment: all of them or none. They are in the order
// of the options. They are a group: that of the options, or of the first one's ID.
func (e *Engine) CreateTogether(ctx context.Context, all []capture.Options, p plan.Progress) ([]capture.Created, error) {
	for _, o := range all {
		if err := o.Check(); err != nil {
			return nil, err
		}
	}
	return e.createSettled(ctx, all, p)
}

// createOne takes one snapshot, of a container or a line. A request with an idempotency key that was made
// before has the answer of that time.
func (e *Engine) createOne(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error) {
	if err := o.Check(); err != nil {
		return capture.Created{}, err
	}
	if o.Line != "" {
		return orMade(e.createState(ctx, o, p))
	}
	all, err := e.createSettled(ctx, []capture.Options{o}, p)
	if err != nil {
		return orMade(capture.Created{}, err)
	}
	return all[0], nil
}

// orMade turns the error that a request was made before into its snapshot.
func orMade(created capture.Created, err error) (capture.Created, error) {
	if made, ok := errors.AsType[*capture.MadeError](err); ok {
		return capture.Created{Snapshot: made.Snapshot}, nil
	}
	return created, err
}

// createSettled takes snapshots of containers, and begins again if one of them has changed meanwhile.
func (e *Engine) createSettled(ctx context.Context, all []capture.Options, p plan.Progress) ([]capture.Created, error) {
	when, err := e.capture.NewRequest(len(all))
	if err != nil {
		return nil, err
	}
	preparing, stop := context.WithCancel(ctx)
	defer stop()
	early := e.docker.AskInfoEarly(preparing)
	defer early.Stop()
	moved := 0
	for attempt := 1; ; attempt++ {
		p.Status("inspect", "reading configuration of "+namesOf(all))
		from, err := e.observeSettled(ctx, all, early, p)
		var created []capture.Created
		if err == nil {
			created, err = e.capture.Take(ctx, from, when, p)
		}
		if again, settleErr := e.settleMoved(ctx, err); settleErr != nil {
			return nil, settleErr
		} else if again && moved < movedAttempts {
			attempt--
			moved++
			continue
		}
		if !cerrdefs.IsNotFound(err) || attempt == createAttempts {
			return created, err
		}
		if gone, inspectErr := e.missing(ctx, all); gone {
			return created, errors.Join(err, inspectErr)
		}
	}
}

// namesOf names the containers of some options.
func namesOf(all []capture.Options) string {
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = o.Container
	}
	return strings.Join(names, ", ")
}

// missing tells whether one of the containers is not there.
func (e *Engine) missing(ctx context.Context, all []capture.Options) (bool, error) {
	for _, o := range all {
		if c, err := e.docker.InspectIfThere(ctx, o.Container); c == nil || err != nil {
			return true, err
		}
	}
	return false, nil
}

// createAttempts is how often Create begins again after a container was
// replaced while it waited for another operation.
const createAttempts = 3

// movedAttempts is how often it does so because something about a container has
// changed: mostly because a restore in place that it has waited for is over.
const movedAttempts = 100

// settleMoved tells whether the snapshots have to begin again because a container changed, or
// because an interrupted operation left containers frozen, which it thaws.
func (e *Engine) settleMoved(ctx context.Context, failure error) (again bool, err error) {
	if interrupted, ok := errors.AsType[*capture.LeftFrozenError](failure); ok {
		return true, e.thawInterrupted(ctx, interrupted.Workers)
	}
	return errors.Is(failure, pending.ErrMoved), nil
}

// observeSettled observes containers, after settling any pending restore in place that concerns one of them
// or its volumes. It looks for one while it observes, because there hardly ever is one; if there
// is, it observes again.
func (e *Engine) observeSettled(ctx context.Context, all []capture.Options, early dockerop.EarlyInfo, p plan.Progress) ([]capture.Source, error) {
	tried, looked := replace.Leftovers{}, false
	for {
		from, workers, failed, err := e.observeBeside(ctx, all, early, p)
		if err != nil {
			return nil, err
		}
		e.pending.ClearDead(ctx, workers, p)
		found, err := scopeOf(all, from).Choose(workers, p)
		if err != nil {
			return nil, err
		}
		again, err := e.settlePauses(ctx, from, workers, p)
		if err != nil {
			return nil, err
		}
		if found = tried.Untried(found); len(found) == 0 && !again {
			if cerrdefs.IsNotFound(failed) && !looked { // a restore that ended this moment had renamed it
				looked = true
				continue
			}
			return from, failed
		}
		if err := tried.Conclude(ctx, e.replace, found, p); err != nil {
			return nil, err
		}
	}
}

// observeBeside observes containers, and lists the workers meanwhile. That the containers could not be observed is
// failed: a pending restore may be the reason.
func (e *Engine) observeBeside(ctx context.Context, all []capture.Options, early dockerop.EarlyInfo, p plan.Progress) (from []capture.Source, workers []pending.Worker, failed, err error) {
	calls, callsCtx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		workers, err = e.pending.Workers(callsCtx, volumebackup.LabelPurpose)
		return err
	})
	observed := make(chan struct{})
	calls.Go(func() error {
		defer close(observed)
		from, failed = e.capture.Observe(callsCtx, all, early, p)
		return nil
	})
	for _, o := range all {
		calls.Go(func() error {
			e.helpIfStuck(callsCtx, observed, o.Container, p)
			return nil
		})
	}
	err = calls.Wait()
	return from, workers, failed, err
}

// scopeOf is what snapshots of containers concern, as far as these could be observed.
func scopeOf(all []capture.Options, from []capture.Source) pending.Scope {
	var about pending.Scope
	for _, o := range all {
		about.Words = append(about.Words, o.Container)
	}
	for _, s := range from {
		about = about.Of(s.Container)
		about.Volumes = dockerop.Distinct(about.Volumes, pending.VolumesOf(s.Mounts))
	}
	return about
}

// settlePauses finds out whether containers are paused because of another snapshot. It waits for one
// that is being taken, and thaws what an interrupted one left. Then the containers have to be
// observed again.
func (e *Engine) settlePauses(ctx context.Context, from []capture.Source, workers []pending.Worker, p plan.Progress) (again bool, err error) {
	for _, s := range from {
		settled, err := e.settlePause(ctx, s, workers, p)
		if err != nil {
			return false, err
		}
		again = again || settled
	}
	return again, nil
}

func (e *Engine) settlePause(ctx context.Context, from capture.Source, workers []pending.Worker, p plan.Progress) (again bool, err error) {
	if !from.Container.State.Paused {
		return false, nil
	}
	ids := []string{from.Container.ID}
	for _, w := range pending.FreezersOf(workers, ids, true) {
		again = true
		if err := e.pending.Await(ctx, w, dockerop.ContainerName(from.Container), p); err != nil {
			return false, err
		}
	}
	dead := pending.Interrupted(workers, ids)
	return again || len(dead) > 0, e.thawInterrupted(ctx, dead)
}
