package volumebackup

import (
	"context"
	"errors"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// Entry is one entry of an archive, for people.
type Entry = protocol.Entry

// Damage is one place in the store that is not what it should be.
type Damage = protocol.Damage

// Claim says whose archives are to be deleted. The ID alone would not do: any image can claim one.
type Claim = protocol.Claim

// Seen is what one image store of one engine has.
type Seen = protocol.Seen

// Removed says what a removal did.
type Removed = protocol.RemoveResult

// RemoveOptions says which archives to delete.
type RemoveOptions struct {
	Claims []Claim
	// Seen is what the engine has. Archives that belong to it, but have had no image
	// there for a week, are deleted as well. Nil keeps them.
	Seen *Seen
	// Now does not wait for others who use the store.
	Now bool
}

// subject is whose archives are deleted, for people.
func (o RemoveOptions) subject() string {
	switch len(o.Claims) {
	case 0:
		return "snapshots without an image"
	case 1:
		return o.Claims[0].Snapshot
	}
	return fmt.Sprintf("%d snapshots", len(o.Claims))
}

// Remove deletes archives, and frees what no other refers to.
func (s *Service) Remove(ctx context.Context, o RemoveOptions) (removed Removed, err error) {
	err = s.store.find(ctx)
	if _, none := errors.AsType[*NoStoreError](err); none {
		return Removed{}, nil // it went with all that was in it
	}
	if err != nil {
		return Removed{}, err
	}
	if s.store.isShared() { // then others know what this engine does not
		o.Seen = nil
	}
	err = s.alone(ctx, job{purpose: "remove " + o.subject(), rights: toTidy}, func(session *session) error {
		if o.Now {
			session.client.LockTimeout = 0
		}
		removed, err = session.client.Remove(ctx, protocol.RemoveRequest{
			Snapshots: o.Claims, Seen: o.Seen,
		}, session.emit)
		return err
	})
	if err != nil {
		return Removed{}, fmt.Errorf("remove archives of %s: %w", o.subject(), err)
	}
	return removed, nil
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

// alone runs f with a worker that sees only the store. The worker needs no lock: the store has its own.
func (s *Service) alone(ctx context.Context, j job, f func(*session) error) error {
	session, err := s.start(ctx, j, nil)
	if err != nil {
		return err
	}
	err = session.explain(f(session))
	return errors.Join(err, session.Close())
}
