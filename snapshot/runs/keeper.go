package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/session"
)

// Keeper keeps the sessions of runs on an engine. It keeps no state of its own and may be used by
// several goroutines.
type Keeper struct {
	docker  *dockerop.Engine
	catalog *catalog.Catalog
	now     func() time.Time
	random  io.Reader
}

// NewKeeper returns the keeper of an engine's sessions. It reads the time from now, and what tells the
// holders of locks apart from random.
func NewKeeper(docker *dockerop.Engine, cat *catalog.Catalog, now func() time.Time, random io.Reader) *Keeper {
	return &Keeper{docker: docker, catalog: cat, now: now, random: random}
}

// begin writes a new session, or continues that of an earlier run with the same ID: its snapshots,
// numbers and events stay. It fails if that was a run of another container.
func (k *Keeper) begin(ctx context.Context, s session.Session) (session.Session, error) {
	release, err := k.lock(ctx, s.RunID)
	if err != nil {
		return session.Session{}, err
	}
	defer release()
	before, err := k.catalog.Session(ctx, s.RunID)
	_, none := errors.AsType[*catalog.RunNotFoundError](err)
	switch {
	case none:
		info, err := k.docker.Identify(ctx)
		if err != nil {
			return session.Session{}, err
		}
		before.Architecture = info.Architecture()
	case err != nil:
		return session.Session{}, err
	case before.Container != s.Container:
		return session.Session{}, &OtherContainerError{RunID: s.RunID, Container: before.Container}
	default:
		s.Started, s.Next = before.Started, before.Next
		s.Snapshots, s.Restores = before.Snapshots, before.Restores
		s.EngineNetwork, s.NetworkEvents = before.EngineNetwork, before.NetworkEvents
	}
	return s, k.write(ctx, before, s)
}

// lock waits until no other client writes to the session of a run. The caller must call release.
func (k *Keeper) lock(ctx context.Context, runID string) (release func(), err error) {
	lock, err := k.docker.Lock(ctx, dockerop.LockName(dockerop.RunLocks, runID), nil, k.random, k.now)
	if err != nil {
		return nil, fmt.Errorf("lock run %s: %w", runID, err)
	}
	return func() { _, _ = lock.Release(ctx) }, nil // what is not released, others take as from a dead client
}

// update changes the session of a run. It works on what the session is now, because other clients may
// have written to it.
func (k *Keeper) update(ctx context.Context, runID string, change func(s *session.Session) error) error {
	release, err := k.lock(ctx, runID)
	if err != nil {
		return err
	}
	defer release()
	before, err := k.catalog.Session(ctx, runID)
	if err != nil {
		return err
	}
	changed := before.Session
	if err := change(&changed); err != nil {
		return err
	}
	return k.write(ctx, before, changed)
}

// write puts a session in the place of what was there before. The new image takes the name in one step;
// then the old one, which has none any more, is removed.
func (k *Keeper) write(ctx context.Context, before catalog.KeptSession, s session.Session) error {
	ref := catalog.SessionRef(s.RunID)
	text, err := session.Encode(s)
	if err != nil {
		return err
	}
	if before.ImageID != "" {
		if same, err := session.Encode(before.Session); err == nil && same == text {
			return nil
		}
	}
	archive, err := session.Archive(ref, before.Architecture, text)
	if err != nil {
		return err
	}
	if err := k.docker.LoadImage(ctx, archive); err != nil {
		return fmt.Errorf("write the session of run %s: load image %s: %w", s.RunID, ref, err)
	}
	if before.ImageID == "" {
		return nil
	}
	after, cancel := dockerop.Cleanup(ctx)
	defer cancel()
	return dockerop.Describe(k.docker.RemoveImage(after, before.ImageID), "remove the earlier session of run "+s.RunID)
}

// Session returns the session of a run.
func (k *Keeper) Session(ctx context.Context, runID string) (session.Session, error) {
	kept, err := k.catalog.Session(ctx, runID)
	return kept.Session, err
}

// Sessions returns the sessions of all runs, the newest first.
func (k *Keeper) Sessions(ctx context.Context) ([]session.Session, error) {
	return k.catalog.Sessions(ctx)
}

// Remove removes the session of a run. Its snapshots stay.
func (k *Keeper) Remove(ctx context.Context, runID string) error {
	release, err := k.lock(ctx, runID)
	if err != nil {
		return err
	}
	defer release()
	if _, err := k.catalog.Session(ctx, runID); err != nil {
		return err
	}
	return dockerop.Describe(k.docker.RemoveImage(ctx, catalog.SessionRef(runID)), "remove the session of run "+runID)
}

// Annotate stores the caller's list of network events, which is JSON, in place of the one before.
func (k *Keeper) Annotate(ctx context.Context, runID string, events []byte) error {
	if err := session.CheckNetworkEvents(events); err != nil {
		return fmt.Errorf("network events: %w", err)
	}
	return k.update(ctx, runID, func(s *session.Session) error {
		s.NetworkEvents = events
		return nil
	})
}
