package volumebackup

import (
	"context"
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// Entry is one entry of an archive, for people.
type Entry = protocol.Entry

// Damage is one place in the store that is not what it should be.
type Damage = protocol.Damage

// RemoveOptions says which archives to delete.
type RemoveOptions struct {
	Snapshot string
	// Existing lists every snapshot that the engine still has. The archives of
	// others are deleted once they are an hour old. Nil keeps them.
	Existing []string
}

// Remove deletes archives, and frees what no other refers to. It returns the
// bytes that were freed.
func (s *Service) Remove(ctx context.Context, o RemoveOptions) (freed int64, err error) {
	if err := s.keepForeign(ctx, &o); err != nil {
		return 0, err
	}
	err = s.alone(ctx, job{purpose: "remove " + o.Snapshot, rights: toTidy}, func(session *session) error {
		result, err := session.client.Remove(ctx, protocol.RemoveRequest{
			Snapshots: []string{o.Snapshot}, Existing: o.Existing, LockTimeoutMillis: s.lockTimeout.Milliseconds(),
		}, session.emit)
		freed = result.Freed
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove archives of %s: %w", o.Snapshot, err)
	}
	return freed, nil
}

// keepForeign leaves alone what this engine does not know if the store may
// belong to other engines as well.
func (s *Service) keepForeign(ctx context.Context, o *RemoveOptions) error {
	store, err := s.docker.VolumeInspect(ctx, s.store)
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect volume %s: %w", s.store, err)
	}
	if store.Driver != "local" || store.Options["device"] != "" {
		o.Existing = nil
	}
	return nil
}

// Entries hands every entry of an archive to visit, sorted by path.
func (s *Service) Entries(ctx context.Context, snapshot string, archive int, root string, visit func(Entry)) error {
	err := s.alone(ctx, job{purpose: "list " + snapshot, rights: toLook}, func(session *session) error {
		_, err := session.client.List(ctx, protocol.ListRequest{Snapshot: snapshot, Archive: archive, Root: root}, visit)
		return err
	})
	if err != nil {
		return fmt.Errorf("list archive %d of %s: %w", archive, snapshot, err)
	}
	return nil
}

// alone runs f with a worker that sees the store only. It has no lock: the store
// has its own.
func (s *Service) alone(ctx context.Context, j job, f func(*session) error) error {
	session, err := s.start(ctx, j, nil)
	if err != nil {
		return err
	}
	err = session.explain(f(session))
	return errors.Join(err, session.Close())
}
