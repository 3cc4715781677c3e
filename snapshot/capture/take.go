package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Created is a new snapshot, and how taking it went.
type Created struct {
	catalog.Snapshot
	Frozen     time.Duration // how long containers stood still for it, as far as this program froze them
	Incomplete bool          // something that should be in it could not be kept
	SweepDue   bool          // it is time to sweep; nobody has to wait for that
}

// Request is what the caller of [Capturer.Take] decides: the identity of the snapshot and, if it is
// a part of another operation, how volumes are read and who stops the writers.
type Request struct {
	ID      labels.ID
	created time.Time
	// Begin opens a backup of the volumes; nil: in a worker of its own.
	Begin func(context.Context, volumebackup.BackupOptions, volumebackup.Progress) (archives.Backup, error)
	// Quiesce ends all writing; nil: the writers are frozen, and thawed again.
	Quiesce func(context.Context) error
}

// NewRequest is the request for a snapshot that is taken now. It has an ID of its own.
func (cr *Capturer) NewRequest() (Request, error) {
	created := cr.now().UTC()
	id, err := labels.NewID(created, cr.random)
	return Request{ID: id, created: created}, err
}

// TakeWithin takes a snapshot as a part of another operation.
func (cr *Capturer) TakeWithin(ctx context.Context, when Request, o Options, p plan.Progress) (Created, error) {
	p.Status("inspect", "reading configuration of "+o.Container)
	from, err := cr.Observe(ctx, o, cr.docker.AskInfoEarly(ctx))
	if err != nil {
		return Created{}, err
	}
	return cr.Take(ctx, from, when, o, p)
}

// Take makes a snapshot of what was observed.
func (cr *Capturer) Take(ctx context.Context, from Source, when Request, o Options, p plan.Progress) (result Created, err error) {
	if err := o.Volumes.check(from.Mounts); err != nil {
		return Created{}, err
	}
	record := from.record(when.ID, o)
	record.Created = when.created

	u := dockerop.Rollback{Progress: p}
	defer func() { u.Unless(ctx, &err) }()
	a := &taking{engine: cr, Request: when, from: from, record: &record, p: p}
	imageID, err := a.capture(ctx, o, &u)
	if err != nil {
		return Created{}, err
	}
	s := catalog.Snapshot{Record: record, ImageID: imageID, Refs: a.refs}
	err = cr.catalog.Publish(ctx, &s, from.latest, from.named, &u)
	if endErr := a.ending.Wait(); err == nil {
		err = endErr
	}
	if err != nil {
		return Created{}, err
	}
	cr.retire(ctx, from.named.Snapshot, from.engine, p)
	return Created{Snapshot: s, Frozen: a.frozen, Incomplete: a.lost, SweepDue: a.sweepDue}, nil
}

// Check refuses options that no snapshot can be taken with.
func (o Options) Check() error {
	if o.Container == "" {
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
	return nil
}

// warnSkipped says which volumes' data will not be in the snapshot, unless that
// was asked for. Bind mounts and tmpfs are recorded, but nobody expects them in it.
func (a *taking) warnSkipped() {
	for _, m := range a.record.Mounts {
		if m.Type == string(mount.TypeVolume) && m.Skipped != "" {
			a.lost = true
			a.p.Warn("volumes", fmt.Sprintf("the data of volume %s (%s) is not in the snapshot: %s", m.Name, m.Destination, m.Skipped))
		}
	}
}

// capture archives the volumes and makes the snapshot's image.
func (a *taking) capture(ctx context.Context, o Options, u *dockerop.Rollback) (string, error) {
	a.warnSkipped()
	if a.Begin == nil { // a part of another operation has its own notes
		noteCaptured(a.record.Mounts, a.from.Container.Config.Labels, a.p)
	}
	volumes := chooseVolumes(a.record.Mounts, o.Volumes)
	if len(volumes) == 0 {
		return a.commitOnly(ctx, o, u)
	}
	return a.run(ctx, volumes, o.pause(), container.CommitOptions{Comment: catalog.CommitComment(a.ID)}, u)
}

// limitLayers replaces an image that has too many layers with one that has one.
func (a *taking) limitLayers(ctx context.Context, imageID string, u *dockerop.Rollback) (string, error) {
	if !a.tooDeep() {
		return imageID, nil
	}
	flat, err := a.engine.flatten(ctx, imageID, a.ID, a.p)
	if err != nil {
		return "", fmt.Errorf("flatten image of container %s: %w", a.record.Container.Name, err)
	}
	u.Add(func(ctx context.Context) error { return a.engine.docker.RemoveImage(ctx, flat) })
	if err := a.engine.docker.RemoveImage(ctx, imageID); err != nil {
		return "", fmt.Errorf("remove layered image of container %s: %w", a.record.Container.Name, err)
	}
	return flat, nil
}

// commitOnly commits a container without volumes. The engine itself freezes it meanwhile, so a
// client that dies leaves nothing frozen. If somebody else thaws it, commitOnly commits again,
// under a lock.
func (a *taking) commitOnly(ctx context.Context, o Options, u *dockerop.Rollback) (string, error) {
	if a.Quiesce != nil {
		if err := a.Quiesce(ctx); err != nil {
			return "", err
		}
	}
	imageID, err := a.commitWatched(ctx, o, u)
	if errors.Is(err, errThawed) && a.Begin == nil {
		a.p.Status("commit", err.Error()+": committing the container again")
		imageID, err = a.run(ctx, nil, o.pause(), container.CommitOptions{Comment: catalog.CommitComment(a.ID)}, u)
	}
	if err != nil {
		return "", err
	}
	if len(a.refs) > 0 {
		return imageID, nil
	}
	u.Add(func(ctx context.Context) error { return a.engine.docker.RemoveImage(ctx, imageID) })
	return a.limitLayers(ctx, imageID, u)
}

// commitWatched commits the container, and checks that it stood still meanwhile. An
// image of one that did not is removed again.
func (a *taking) commitWatched(ctx context.Context, o Options, u *dockerop.Rollback) (string, error) {
	name := a.record.Container.Name
	own, err := a.seal()
	if err != nil {
		return "", err
	}
	a.p.Status("commit", "committing "+name)
	options := container.CommitOptions{Comment: catalog.CommitComment(a.ID), Pause: o.pause() != PauseNone, Config: commitConfig(a.from, own)}
	if !a.tooDeep() { // then there is nothing left to do to the image, and it can have its tag at once
		options.Reference = catalog.TagOf(name, string(a.ID)).String()
		// The tag finds the image even if the engine's answer is lost.
		u.Add(func(ctx context.Context) error { return a.engine.docker.RemoveImage(ctx, options.Reference) })
	}
	disturbed, stop := a.watchCommit(ctx, options)
	defer stop()
	imageID, err := a.engine.docker.Commit(ctx, a.from.Container.ID, options)
	if err != nil {
		return "", fmt.Errorf("commit container %s: %w", name, err)
	}
	if err := disturbed(); err != nil {
		after, cancel := dockerop.Cleanup(ctx)
		defer cancel()
		return "", errors.Join(err, a.engine.docker.RemoveImage(after, imageID))
	}
	if options.Reference != "" {
		a.refs = []string{options.Reference}
	}
	return imageID, nil
}

// watchCommit watches the container until it is committed. The function that it returns tells what
// is wrong with the image: [errThawed] if the container ran meanwhile, [pending.ErrMoved] if it was
// found paused and ran.
func (a *taking) watchCommit(ctx context.Context, o container.CommitOptions) (disturbed func() error, stop func()) {
	state := dockerop.ContainerState(a.from.Container.State)
	if !o.Pause || a.Quiesce != nil || state != labels.StateRunning && state != labels.StatePaused {
		return func() error { return nil }, func() {}
	}
	watch := a.engine.docker.WatchThaws(ctx)
	return func() error {
		heard, err := watch.UntilCommit(ctx, o.Comment)
		id := a.from.Container.ID
		ran := slices.Contains(heard.Ran, id)
		switch {
		case err != nil:
			return err
		case state == labels.StatePaused && (ran || slices.Contains(heard.Paused, id)):
			return pending.ErrMoved
		case ran:
			return errThawed
		}
		return nil
	}, watch.Stop
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

// seal completes the record, and returns the labels that say it.
func (a *taking) seal() (own map[string]string, err error) {
	if a.record.Seal, err = labels.Seal(*a.record, a.from.key); err == nil {
		own, err = labels.Encode(*a.record)
	}
	if err != nil {
		return nil, fmt.Errorf("describe container %s: %w", a.record.Container.Name, err)
	}
	return own, nil
}

// tooDeep tells whether the image would have more layers than is good.
func (a *taking) tooDeep() bool {
	if a.from.image == nil {
		return true // not known: flatten rather than hit the engine's limit
	}
	return len(a.from.image.RootFS.Layers)+1 > maxLayers
}
