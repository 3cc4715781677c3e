package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Created is a new snapshot, and how taking it went.
type Created struct {
	catalog.Snapshot
	Frozen     time.Duration // how long containers stood still for it, commits included
	Incomplete bool          // something that should be in it could not be kept
	Skipped    string        // why no snapshot was taken; empty: this is one
	SweepDue   bool          // it is time to sweep; nobody has to wait for that
	// Contradicted says that files did not hold what the store said of them: earlier snapshots may be damaged.
	Contradicted bool
}

// Request is what the caller of [Capturer.Take] decides: the identities of the snapshots and, if they
// are a part of another operation, how volumes are read and who stops the writers.
type Request struct {
	IDs     []labels.ID // one for each source
	created time.Time
	// Begin opens a backup of the volumes of one container; nil: in a worker of its own.
	Begin func(context.Context, volumebackup.BackupOptions, volumebackup.Progress) (archives.Backup, error)
	// Quiesce ends all writing; nil: the writers are frozen, and thawed again.
	Quiesce func(context.Context) error
	// Freezes says that Quiesce does not stop the writers: frozen ones may have dirty pages mapped.
	Freezes bool
}

// NewRequest is the request for snapshots of some containers that are taken now. Each has an ID of
// its own, and all have the same time.
func (cr *Capturer) NewRequest(containers int) (Request, error) {
	return cr.requestAt(cr.now(), containers)
}

func (cr *Capturer) requestAt(created time.Time, containers int) (Request, error) {
	r := Request{created: created.UTC()}
	for range containers {
		id, err := labels.NewID(r.created, cr.random)
		if err != nil {
			return Request{}, err
		}
		r.IDs = append(r.IDs, id)
	}
	return r, nil
}

// TakeWithin takes snapshots as a part of another operation.
func (cr *Capturer) TakeWithin(ctx context.Context, when Request, o []Options, p plan.Progress) ([]Created, error) {
	for _, one := range o {
		p.Status("inspect", "reading configuration of "+one.Container)
	}
	early := cr.docker.AskInfoEarly(ctx)
	defer early.Stop()
	sources, err := cr.Observe(ctx, o, early, p)
	if err != nil {
		return nil, err
	}
	return cr.Take(ctx, sources, when, p)
}

// Take makes a snapshot of each source, all of one moment: whoever can write to one of them, or to
// its volumes, is frozen from before the first is captured until after the last is. It makes all of
// them or none, and returns them in the order of the sources.
func (cr *Capturer) Take(ctx context.Context, sources []Source, when Request, p plan.Progress) (all []Created, err error) {
	if when.Begin == nil { // else a journal has the IDs, and [Capturer.NewRequestFor] has seen to the time
		if when, err = cr.dateAfter(when, latestOf(sources), p); err != nil {
			return nil, err
		}
	}
	a, err := cr.taking(sources, when, p)
	if err != nil {
		return nil, err
	}
	u := dockerop.Rollback{Progress: p}
	defer func() { u.Unless(ctx, &err) }()
	if err := a.capture(ctx, &u); err != nil {
		return nil, err
	}
	all, err = a.publish(ctx, &u)
	for _, end := range a.held {
		a.ending.Go(end)
	}
	if endErr := a.ending.Wait(); err == nil {
		err = endErr
	}
	if err != nil {
		return nil, err
	}
	a.warnStood()
	for _, one := range a.parts {
		cr.retire(ctx, one.from.named.Snapshot, one.from.engine, p)
	}
	return all, nil
}

// publish tags the images. All of them can be rolled back until the last is tagged.
func (a *taking) publish(ctx context.Context, u *dockerop.Rollback) ([]Created, error) {
	all := make([]Created, len(a.parts))
	for i, one := range a.parts {
		s := catalog.Snapshot{Record: *one.record, ImageID: one.imageID, Refs: one.refs}
		if err := a.engine.catalog.Publish(ctx, &s, one.from.latest, one.from.named, u); err != nil {
			return nil, err
		}
		all[i] = Created{Snapshot: s, Frozen: a.stood.total, Incomplete: one.lost, SweepDue: one.sweepDue, Contradicted: one.contradicted}
	}
	return all, nil
}

// Check refuses options that no snapshot can be taken with.
func (o Options) Check() error {
	switch {
	case o.Line != "":
		if err := labels.CheckLine(o.Line); err != nil {
			return err
		}
	case o.Container == "":
		return errors.New("container name cannot be empty")
	}
	if o.Name != "" {
		if err := labels.CheckName(o.Name); err != nil {
			return err
		}
	}
	if o.Reuse && o.Name == "" {
		return errors.New("only a snapshot with a name can replace another one")
	}
	for key, value := range o.Meta {
		if err := labels.CheckMetaKey(key); err != nil {
			return fmt.Errorf("meta: %w", err)
		}
		if value == "" {
			return fmt.Errorf("meta: %s has no value", key)
		}
	}
	if err := o.Limits.check(); err != nil {
		return err
	}
	if o.IdempotencyKey != "" {
		if err := labels.CheckIdempotencyKey(o.IdempotencyKey); err != nil {
			return err
		}
	}
	if o.Usage != nil {
		if err := o.Usage.Check(); err != nil {
			return err
		}
	}
	return checkAttachments(o.Attachments)
}

// capture archives the volumes and makes the images. A container without volumes is left to the
// engine, if it is the only one.
func (a *taking) capture(ctx context.Context, u *dockerop.Rollback) error {
	for _, one := range a.parts {
		one.warnSkipped()
		if a.Begin == nil { // a part of another operation has its own notes
			noteSwarm(one.record.Container.Name, one.from.Container.Config.Labels, a.p)
			noteCaptured(one.record.Mounts, one.from.Container.Config.Labels, a.p)
		}
		one.volumes = chooseVolumes(one.record.Mounts, one.from.options.Volumes)
		one.from.options.Exclude.noteExclusions(a.p)
		one.from.options.Exclude.exclude(one.volumes, one.excluded)
		one.from.options.Limits.limit(one.volumes)
	}
	if err := a.checkOnce(ctx); err != nil { // without the lock that can miss one, but it need not wait
		return err
	}
	if first := a.parts[0]; len(a.parts) == 1 && !first.stores() && !a.exclusive() {
		return first.commitHooked(ctx, u)
	}
	return a.run(ctx, u)
}

// limitLayers replaces an image that has too many layers with one that has one.
func (a *part) limitLayers(ctx context.Context, u *dockerop.Rollback) error {
	if !a.tooDeep() {
		return nil
	}
	flat, err := a.engine.flatten(ctx, a.imageID, a.record.ID, a.p)
	if err != nil {
		return fmt.Errorf("flatten image of container %s: %w", a.record.Container.Name, err)
	}
	u.Add(func(ctx context.Context) error { return a.engine.docker.RemoveImage(ctx, flat) })
	if err := a.engine.docker.RemoveImage(ctx, a.imageID); err != nil {
		return fmt.Errorf("remove layered image of container %s: %w", a.record.Container.Name, err)
	}
	a.imageID = flat
	return nil
}

// commitOnly commits a container without volumes. The engine itself freezes it meanwhile, so a
// client that dies leaves nothing frozen. If somebody else thaws it, commitOnly commits again,
// under a lock.
func (a *part) commitOnly(ctx context.Context, u *dockerop.Rollback) (err error) {
	if a.Quiesce != nil {
		if err := a.quiesce(ctx); err != nil {
			return err
		}
	}
	a.imageID, err = a.commitWatched(ctx, u)
	switch {
	case errors.Is(err, errThawed) && a.Begin == nil:
		a.p.Status("commit", err.Error()+": committing the container again")
		return a.run(ctx, u)
	case err != nil || len(a.refs) > 0:
		return err
	}
	made := a.imageID
	u.Add(func(ctx context.Context) error { return a.engine.docker.RemoveImage(ctx, made) })
	return a.limitLayers(ctx, u)
}

// commitWatched commits the container, and checks that it stood still meanwhile. An
// image of one that did not is removed again.
func (a *part) commitWatched(ctx context.Context, u *dockerop.Rollback) (string, error) {
	name := a.record.Container.Name
	own, err := a.seal()
	if err != nil {
		return "", err
	}
	a.p.Status("commit", "committing "+name)
	options := container.CommitOptions{Comment: a.comment(), Pause: a.from.options.pause() != PauseNone, Config: commitConfig(a.from, own)}
	if !a.tooDeep() { // then there is nothing left to do to the image, and it can have its tag at once
		options.Reference = catalog.TagOf(name, string(a.record.ID)).String()
		// The tag finds the image even if the engine's answer is lost.
		u.Add(func(ctx context.Context) error { return a.engine.docker.RemoveImage(ctx, options.Reference) })
	}
	watch := a.watchCommit(ctx, options)
	defer func() { watch.stop() }()
	defer a.thawIfGivenUp(ctx, options)()
	imageID, err := a.engine.docker.CommitWatched(ctx, a.from.Container.ID, options, func() {
		watch.measure(ctx)
		watch.stop()
		watch = a.watchCommit(ctx, options)
	})
	if err != nil {
		return "", a.commitFailed(err)
	}
	err = watch.disturbed(ctx)
	watch.measure(ctx)
	if err != nil {
		after, cancel := dockerop.Cleanup(ctx)
		defer cancel()
		return "", errors.Join(err, a.engine.docker.RemoveImage(after, imageID))
	}
	if options.Reference != "" {
		a.refs = []string{options.Reference}
	}
	return imageID, nil
}

// thawIfGivenUp thaws the container as soon as ctx ends, until stop is called: an engine goes on with its
// commit, and keeps the container frozen until the end.
func (a *part) thawIfGivenUp(ctx context.Context, o container.CommitOptions) (stop func()) {
	if !o.Pause || dockerop.ContainerState(a.from.Container.State) != labels.StateRunning {
		return func() {}
	}
	forget := context.AfterFunc(ctx, func() {
		after, cancel := dockerop.Cleanup(ctx)
		defer cancel()
		_, _ = a.engine.docker.Thaw(after, []string{a.from.Container.ID}) // else the engine does, once it is through
	})
	return func() { forget() }
}

// trigger is what the options say, in which manual is the default.
func (o Options) trigger() labels.Trigger {
	return cmp.Or(o.Trigger, labels.TriggerManual)
}

// usage is what is recorded of it.
func (o Options) usage() *float64 {
	if o.Usage == nil {
		return nil
	}
	return &o.Usage.Now
}

// pause is what the options say, in which all is the default.
func (o Options) pause() Pause {
	switch {
	case o.NoPause:
		return PauseNone
	case o.Pause == "":
		return PauseAll
	}
	return o.Pause
}
