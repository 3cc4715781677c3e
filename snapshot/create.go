package snapshot

import (
	"context"
	"errors"

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

// createOne takes one snapshot, of a container or a line. A request with an idempotency key that was made
// before has the answer of that time.
func (e *Engine) createOne(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error) {
	if err := o.Check(); err != nil {
		return capture.Created{}, err
	}
	create := e.createSettled
	if o.Line != "" {
		create = e.createState
	}
	created, err := create(ctx, o, p)
	if made, ok := errors.AsType[*capture.MadeError](err); ok {
		return capture.Created{Snapshot: made.Snapshot}, nil
	}
	return created, err
}

// createSettled takes a snapshot of a container, and begins again if that has changed meanwhile.
func (e *Engine) createSettled(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error) {
	when, err := e.capture.NewRequest(1)
	if err != nil {
		return capture.Created{}, err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	early := e.docker.AskInfoEarly(asking)
	moved := 0
	for attempt := 1; ; attempt++ {
		p.Status("inspect", "reading configuration of "+o.Container)
		from, err := e.observeSettled(ctx, o, early, p)
		var created capture.Created
		if err == nil {
			created, err = e.takeOne(ctx, from, when, p)
		}
		if again, settleErr := e.settleMoved(ctx, err); settleErr != nil {
			return capture.Created{}, settleErr
		} else if again && moved < movedAttempts {
			attempt--
			moved++
			continue
		}
		if !cerrdefs.IsNotFound(err) || attempt == createAttempts {
			return created, err
		}
		if c, inspectErr := e.docker.InspectIfThere(ctx, o.Container); c == nil {
			return created, errors.Join(err, inspectErr)
		}
	}
}

// observeOne and takeOne are the capture of a list of one container.
func (e *Engine) observeOne(ctx context.Context, o capture.Options, early dockerop.EarlyInfo) (capture.Source, error) {
	all, err := e.capture.Observe(ctx, []capture.Options{o}, early)
	if err != nil {
		return capture.Source{}, err
	}
	return all[0], nil
}

func (e *Engine) takeOne(ctx context.Context, from capture.Source, when capture.Request, p plan.Progress) (capture.Created, error) {
	all, err := e.capture.Take(ctx, []capture.Source{from}, when, p)
	if err != nil {
		return capture.Created{}, err
	}
	return all[0], nil
}

// createAttempts is how often Create begins again after the container was
// replaced while it waited for another operation.
const createAttempts = 3

// movedAttempts is how often it does so because something about the container has
// changed: mostly because a restore in place that it has waited for is over.
const movedAttempts = 100

// settleMoved tells whether the snapshot has to begin again because the container changed, or
// because an interrupted operation left containers frozen, which it thaws.
func (e *Engine) settleMoved(ctx context.Context, failure error) (again bool, err error) {
	if interrupted, ok := errors.AsType[*capture.LeftFrozenError](failure); ok {
		return true, e.thawInterrupted(ctx, interrupted.Workers)
	}
	return errors.Is(failure, pending.ErrMoved), nil
}

// observeSettled observes a container, after settling any pending restore in place that concerns it
// or its volumes. It looks for one while it observes, because there hardly ever is one; if there
// is, it observes again.
func (e *Engine) observeSettled(ctx context.Context, o capture.Options, early dockerop.EarlyInfo, p plan.Progress) (capture.Source, error) {
	tried, looked := replace.Leftovers{}, false
	for {
		var workers []pending.Worker
		var from capture.Source
		var failed error
		calls, callsCtx := errgroup.WithContext(ctx)
		calls.Go(func() (err error) {
			workers, err = e.pending.Workers(callsCtx, volumebackup.LabelPurpose)
			return err
		})
		observed := make(chan struct{})
		calls.Go(func() error {
			defer close(observed)
			from, failed = e.observeOne(callsCtx, o, early)
			return nil // a pending restore may be the reason
		})
		calls.Go(func() error {
			e.helpIfStuck(callsCtx, observed, o.Container, p)
			return nil
		})
		if err := calls.Wait(); err != nil {
			return capture.Source{}, err
		}
		e.pending.ClearDead(ctx, workers, p)
		about := pending.Scope{Words: []string{o.Container}}
		if failed == nil {
			about = about.Of(from.Container)
			about.Volumes = pending.VolumesOf(from.Mounts)
		}
		pending, err := about.Choose(workers, p)
		if err != nil {
			return capture.Source{}, err
		}
		again, err := e.settlePause(ctx, from, workers, p)
		if err != nil {
			return capture.Source{}, err
		}
		if pending = tried.Untried(pending); len(pending) == 0 && !again {
			if cerrdefs.IsNotFound(failed) && !looked { // a restore that ended this moment had renamed it
				looked = true
				continue
			}
			return from, failed
		}
		if err := tried.Conclude(ctx, e.replace, pending, p); err != nil {
			return capture.Source{}, err
		}
	}
}

// settlePause finds out whether a container is paused because of another snapshot. It waits for one
// that is being taken, and thaws what an interrupted one left. Then the container has to be
// observed again.
func (e *Engine) settlePause(ctx context.Context, from capture.Source, workers []pending.Worker, p plan.Progress) (again bool, err error) {
	if from.Container.ContainerJSONBase == nil || !from.Container.State.Paused {
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
