package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// standUp creates the new containers, and sees to it that they come up. None is started before all
// are made: once one is at work, nothing is missing that a recovery would need to go on.
func (t *transaction) standUp(ctx context.Context) error {
	members := t.making()
	for _, m := range members {
		if err := t.make(ctx, m); err != nil {
			return err
		}
	}
	t.watch.Lap("create")
	return t.bringUp(ctx, members)
}

// bringUp starts the containers that are to be started, and waits until they are ready.
func (t *transaction) bringUp(ctx context.Context, members []*member) error {
	if !slices.ContainsFunc(members, func(m *member) bool { return m.Start }) {
		t.watch.Skip("start", "wait")
		return context.Cause(ctx)
	}
	if err := t.startAll(ctx, members); err != nil {
		return err
	}
	t.watch.Lap("start")
	if err := t.waitAll(ctx, members); err != nil {
		return err
	}
	t.watch.Lap("wait")
	return context.Cause(ctx)
}

// make creates a new container and its anonymous volumes.
func (t *transaction) make(ctx context.Context, m *member) (err error) {
	t.mark(m)
	m.Spec.Follow(t.current)
	m.newID, err = t.engine.build.Make(ctx, build.Container{Spec: m.Spec, Name: m.Name, Foreign: m.foreign}, t.p)
	if err != nil {
		return err
	}
	return t.fillAnonymous(ctx, m)
}

// mark says on a new container when it was restored, and with which snapshot that is taken back:
// prune keeps that one.
func (t *transaction) mark(m *member) {
	own := m.Spec.Config.Labels
	own[labels.KeyRestoredAt], own[labels.KeyUndo] = labels.FormatTime(t.engine.now()), labels.UndoNone
	if m.safety != nil {
		own[labels.KeyUndo] = string(m.safety.ID)
	}
}

// fillAnonymous fills the anonymous volumes that were made together with a new container. They are gone
// when that is removed, so a rollback needs no journal of them.
// The worker has to end before the container starts: the engine keeps what it mounts.
func (t *transaction) fillAnonymous(ctx context.Context, m *member) error {
	volumes := m.anonymous()
	if len(volumes) == 0 {
		return nil
	}
	names, err := t.engine.build.AnonymousNames(ctx, m.newID, volumes)
	if err != nil {
		return err
	}
	if err := t.ending.Wait(); err != nil { // the worker that bears the name
		return err
	}
	o := volumebackup.WorkerOptions{Name: t.journal.Worker}
	made, err := t.engine.build.FillAnonymous(ctx, m.Snapshot.ID, volumes, names, o, t.p)
	if made == nil {
		return err
	}
	t.worker, t.lost = made.Worker, t.lost || made.Lost
	t.endWorker()
	return errors.Join(err, t.ending.Wait())
}

// startAll starts the new containers that are to be started, and before that the sharers that they
// need.
func (t *transaction) startAll(ctx context.Context, members []*member) error {
	peersErr := t.engine.startOthers(ctx, t.peers(), t.p)
	for _, m := range members {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !m.Start {
			continue
		}
		t.p.Status("start", "starting container "+m.Name)
		if err := t.engine.docker.Start(ctx, m.newID); err != nil {
			return errors.Join(peersErr, fmt.Errorf("start container %s: %w", m.Name, err))
		} // a peer that did not start, though this one did, is tried again at the end
	}
	return nil
}

// waitAll waits until the new containers are ready, all from the same moment on, and pauses those that
// were paused.
func (t *transaction) waitAll(ctx context.Context, members []*member) error {
	began := t.engine.now()
	for _, m := range members {
		if !m.Start {
			continue
		}
		if err := t.engine.build.WaitReady(ctx, build.Awaited{ID: m.newID, Name: m.Name, Began: began, Health: m.Snapshot.Container.Health}, m.options.Waiting, t.p); err != nil {
			if down, ok := errors.AsType[*build.NotReadyError](err); ok {
				down.Promoted = m.promoted != nil
			}
			return err
		}
	}
	for _, m := range members {
		if !m.Start || !m.Pause {
			continue
		}
		if err := t.engine.docker.MakePaused(ctx, m.newID); err != nil {
			return fmt.Errorf("pause container %s: %w", m.Name, err)
		}
	}
	return nil
}
