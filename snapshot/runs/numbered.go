package runs

import (
	"context"
	"errors"
	"strconv"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Create takes one snapshot.
type Create func(ctx context.Context, o capture.Options, p plan.Progress) (capture.Created, error)

// Number takes a snapshot with create and, if that belongs to a run that has a session, gives it a
// number and adds it to the session. Trouble with the session is a warning: it must not keep anybody
// from a snapshot.
func (k *Keeper) Number(ctx context.Context, o capture.Options, p plan.Progress, create Create) (capture.Created, error) {
	if o.RunID == "" || session.CheckRunID(o.RunID) != nil {
		return create(ctx, o, p)
	}
	if _, err := k.catalog.Session(ctx, o.RunID); err != nil {
		if _, none := errors.AsType[*catalog.RunNotFoundError](err); !none {
			p.Warn("run", "the snapshot gets no number: "+err.Error())
		}
		return create(ctx, o, p)
	}
	var number int
	err := k.update(ctx, o.RunID, func(s *session.Session) error {
		number = s.Claim()
		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return capture.Created{}, context.Cause(ctx)
		}
		p.Warn("run", "the snapshot gets no number: "+err.Error())
		return create(ctx, o, p)
	}
	o.Number = &number
	if o.StepID == "" {
		o.StepID = strconv.Itoa(number)
	}
	created, failure := create(ctx, o, p)
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	taken := session.Snapshot{Number: number, ID: created.ID, Trigger: created.Trigger, Container: created.Container.Name}
	if failure == nil {
		created.Layers = k.layersOf(after, created.Snapshot)
		if created.Layers != nil {
			taken.Root = created.Root()
		}
	}
	err = k.update(after, o.RunID, func(s *session.Session) error {
		if failure != nil {
			s.GiveBack(number)
		} else {
			s.Add(taken)
		}
		return nil
	})
	if err != nil && failure == nil {
		p.Warn("run", "the session of run "+o.RunID+" does not list snapshot "+string(created.ID)+": "+err.Error())
	}
	return created, failure
}

// layersOf returns the layers of a new snapshot, on which its root depends, or none if it is gone already: the
// engine knows them only now.
func (k *Keeper) layersOf(ctx context.Context, s catalog.Snapshot) []string {
	found, err := k.catalog.Lookup(ctx, string(s.ID), catalog.TagOf(s.Container.Name, string(s.ID)))
	if err != nil {
		return nil
	}
	return found.Layers
}
