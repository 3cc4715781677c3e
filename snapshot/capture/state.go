package capture

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// TakeState makes a state, the next one of the line that the options name: an image without layers,
// with the attachments in the store. It fails with [catalog.LineError] if there is a container of the
// line's name or a snapshot of one, and with [MadeError] or [NotDueError] as [Capturer.Take] does.
func (cr *Capturer) TakeState(ctx context.Context, o Options, when Request, p plan.Progress) (created Created, err error) {
	p.Status("inspect", "looking at line "+o.Line)
	from, err := cr.observeLine(ctx, o)
	if err != nil {
		return Created{}, err
	}
	if when, err = cr.dateAfter(when, []catalog.Holder{from.latest}, p); err != nil {
		return Created{}, err
	}
	record := from.stateRecord(when.IDs[0])
	record.Created = when.created
	one := &part{from: from, record: &record}
	one.taking = &taking{Request: when, engine: cr, parts: []*part{one}, p: p}
	u := dockerop.Rollback{Progress: p}
	defer func() { u.Unless(ctx, &err) }()
	end, err := one.keep(ctx, &u)
	defer func() { err = errors.Join(err, end()) }()
	if err != nil {
		return Created{}, err
	}
	all, err := one.publish(ctx, &u)
	if err != nil {
		return Created{}, err
	}
	cr.retire(ctx, from.named.Snapshot, from.engine, p)
	return all[0], nil
}

// observeLine looks at everything around a line before a state of it is taken.
func (cr *Capturer) observeLine(ctx context.Context, o Options) (Source, error) {
	s := Source{options: o}
	if len(o.Attachments) > 0 {
		cr.volumes.Prepare(ctx)
	}
	calls, ctx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		s.engine, err = cr.docker.Identify(ctx)
		return err
	})
	calls.Go(func() (err error) {
		s.key, err = cr.catalog.EngineKey(ctx)
		return err
	})
	calls.Go(func() (err error) {
		s.latest, err = cr.catalog.Holder(ctx, catalog.TagOf(o.Line, labels.Latest))
		switch before := s.latest.Snapshot; {
		case err != nil || before == nil:
			return err
		case before.Kind != labels.KindState:
			return &catalog.LineError{Name: o.Line}
		default:
			s.parent = before.ID
			return nil
		}
	})
	calls.Go(func() error {
		c, err := cr.docker.InspectIfThere(ctx, o.Line)
		if err == nil && c != nil && dockerop.ContainerName(*c) == o.Line {
			err = &catalog.LineError{Name: o.Line}
		}
		return err
	})
	if o.Name != "" {
		calls.Go(func() (err error) {
			s.named, err = cr.catalog.ObserveName(ctx, catalog.TagOf(o.Line, o.Name), o.Line, o.Reuse)
			if err != nil { // perhaps by what makes this request needless
				err = errors.Join(cr.checkWanted(ctx, o.Line, o), err)
			}
			return err
		})
	}
	return s, calls.Wait()
}

// stateRecord is what the labels of a state will say.
func (s Source) stateRecord(id labels.ID) labels.Record {
	o := s.options
	return labels.Record{
		ID: id, Kind: labels.KindState, Line: o.Line, Container: labels.Container{Name: o.Line},
		Name: o.Name, Description: o.Description, Tags: o.Tags, Trigger: o.trigger(),
		RunID: o.RunID, StepID: o.StepID, Number: o.Number, Parent: s.parent, Group: o.Group,
		EngineID: s.engine.ID, Expires: o.Expires, Pinned: o.Pinned, Meta: o.Meta, IdempotencyKey: o.IdempotencyKey, Usage: o.usage(),
	}
}

// lineLock is what the worker of a line is known by, in the place of a container's ID: so an
// exclusive request waits for others of its line.
func lineLock(line string) string {
	sum := sha256.Sum256([]byte("line " + line))
	return hex.EncodeToString(sum[:])
}

// keep stores the attachments, and makes the image. The function that it returns ends the worker: once
// the image has its tags, so that who waits for the line finds it.
func (a *part) keep(ctx context.Context, u *dockerop.Rollback) (end func() error, err error) {
	end = func() error { return nil }
	if err := a.checkOnce(ctx); err != nil { // without the lock that can miss one, but it need not wait
		return end, err
	}
	if a.stores() || a.exclusive() {
		a.backup, err = a.engine.volumes.Begin(ctx, volumebackup.BackupOptions{Container: lineLock(a.record.Line), Snapshot: string(a.record.ID)}, archives.Progress(a.p))
		if err != nil {
			return end, err
		}
		end = a.backup.Close
		if err := a.storeState(ctx, u); err != nil {
			return end, err
		}
	}
	if a.backup != nil && !a.exclusive() { // nobody waits: the worker goes while the image is made
		a.ending.Go(a.backup.Close)
		end = a.ending.Wait
	}
	return end, a.load(ctx, u)
}

// storeState puts the attachments into the store.
func (a *part) storeState(ctx context.Context, u *dockerop.Rollback) error {
	if err := a.checkWanted(ctx); err != nil {
		return err
	}
	if !a.stores() {
		return nil
	}
	if err := a.attach(ctx); err != nil {
		return err
	}
	a.record.Store, a.record.StoreID = a.backup.Store()
	u.Add(a.removeStored)
	return a.store(ctx)
}

// load makes the image, which has its ID tag from the start.
func (a *part) load(ctx context.Context, u *dockerop.Rollback) error {
	own, err := a.seal()
	if err != nil {
		return err
	}
	s := catalog.Snapshot{Record: *a.record}
	ref := s.Ref()
	archive, err := session.BareImage{
		Ref: ref, Architecture: a.from.engine.Architecture(), Created: a.created, Comment: a.comment(), Labels: own,
	}.Archive()
	if err != nil {
		return fmt.Errorf("describe state of line %s: %w", a.record.Line, err)
	}
	a.p.Status("load", "making the image")
	u.Add(func(ctx context.Context) error { return a.engine.docker.RemoveImage(ctx, ref) })
	if err := a.engine.docker.LoadImage(ctx, archive); err != nil {
		return fmt.Errorf("load image %s: %w", ref, err)
	}
	found, err := a.engine.docker.ImageInspect(ctx, ref)
	if err != nil {
		return fmt.Errorf("inspect image %s: %w", ref, err)
	}
	a.imageID, a.refs = found.ID, []string{ref}
	return nil
}
