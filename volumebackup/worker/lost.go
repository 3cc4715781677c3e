//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// lost sends each snapshot whose image is gone.
func (s *session) lost(ctx context.Context, r protocol.LostRequest, e *exchange) (protocol.None, error) {
	err := s.store.EachLost(ctx, seenOf(r.Seen), s.options.Now(), func(l store.Lost) {
		e.emit(protocol.Event{Type: protocol.TypeLost, Lost: &protocol.Lost{Snapshot: l.Snapshot, Since: l.Since.UTC(), Labels: l.Labels}})
	})
	return protocol.None{}, err
}

func seenOf(seen protocol.Seen) store.Seen {
	return store.Seen{Engine: seen.Engine, ImageStore: seen.ImageStore, Snapshots: seen.Snapshots}
}

// record replaces the record of a snapshot.
func (s *session) record(ctx context.Context, r protocol.RecordRequest, _ *exchange) (protocol.None, error) {
	claim, err := parseClaim(r.Claim)
	if err != nil {
		return protocol.None{}, err
	}
	return protocol.None{}, s.store.ReplaceRecord(ctx, claim, r.Labels)
}
