//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// remove deletes snapshots and frees what no other refers to.
func (s *session) remove(ctx context.Context, r protocol.RemoveRequest, _ *exchange) (protocol.RemoveResult, error) {
	removal := store.Removal{Now: s.options.Now(), Retention: r.Retention, Volumes: r.Volumes}
	if r.Seen != nil {
		seen := seenOf(*r.Seen)
		removal.Seen = &seen
	}
	for _, c := range r.Snapshots {
		claim, err := parseClaim(c)
		if err != nil {
			return protocol.RemoveResult{}, err
		}
		removal.Snapshots = append(removal.Snapshots, claim)
	}
	removed, err := s.store.Remove(ctx, removal)
	if err != nil {
		return protocol.RemoveResult{}, err
	}
	return protocol.RemoveResult{Removed: removed.Snapshots, Foreign: removed.Foreign, Missed: removed.Missed, Freed: removed.Freed}, nil
}

func parseClaim(c protocol.Claim) (store.Claim, error) {
	claim := store.Claim{Snapshot: c.Snapshot, Container: c.Container, ContainerName: c.ContainerName, Roots: map[int]manifest.Sum{}}
	for n, text := range c.Roots {
		root, err := parseRoot(text)
		if err != nil {
			return store.Claim{}, err
		}
		if root != nil {
			claim.Roots[n] = *root
		}
	}
	return claim, nil
}
