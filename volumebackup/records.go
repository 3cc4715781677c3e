package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// DefaultLostRetention is how long archives are kept whose image is gone, unless [Config] says otherwise.
const DefaultLostRetention = 7 * 24 * time.Hour

// Lost is a snapshot in a store whose image is gone.
type Lost struct {
	protocol.Lost

	Until time.Time // its archives are kept at least until then
}

// Lost lists the snapshots in the store that have lost their images, by what the engine has. A store that is not there
// has none, and of one that other engines may have, too, nobody can tell.
func (s *Service) Lost(ctx context.Context, seen Seen) (all []Lost, err error) {
	err = s.store.find(ctx)
	if _, none := errors.AsType[*NoStoreError](err); none {
		return nil, nil
	}
	if err != nil || s.store.isShared() {
		return nil, err
	}
	err = s.alone(ctx, job{purpose: "look for lost snapshots", rights: toTidy}, func(session *session) error {
		return session.client.Lost(ctx, protocol.LostRequest{Seen: seen}, func(l protocol.Lost) {
			all = append(all, Lost{Lost: l, Until: l.Since.Add(s.lostRetention)})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for lost snapshots in store %s: %w", s.Store(), err)
	}
	return all, nil
}

// Record replaces the record that the store keeps of a snapshot: the labels of its image. It does nothing if the
// store, or what it had of the snapshot, is gone, or is of another snapshot.
func (s *Service) Record(ctx context.Context, claim Claim, labels map[string]string) error {
	err := s.store.find(ctx)
	if err == nil {
		err = s.alone(ctx, job{purpose: "record " + claim.Snapshot, rights: toTidy}, func(session *session) error {
			return session.client.Record(ctx, protocol.RecordRequest{Claim: claim, Labels: labels}, session.emit)
		})
	}
	if errors.Is(err, protocol.NotFound) || errors.Is(err, protocol.Conflict) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("record what is known of %s in store %s: %w", claim.Snapshot, s.Store(), err)
	}
	return nil
}

// LoadImage brings the image of workers to the engine, if it is not there.
func (s *Service) LoadImage(ctx context.Context) error {
	_, err := s.images.ensure(ctx, func(string) {})
	return err
}
