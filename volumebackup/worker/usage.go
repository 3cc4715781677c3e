//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// usage tells what the snapshots hold in the store.
func (s *session) usage(ctx context.Context, _ protocol.UsageRequest, _ *exchange) (protocol.UsageResult, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.UsageResult{}, err
	}
	defer unlock()
	held, err := s.store.Usage(ctx)
	if err != nil {
		return protocol.UsageResult{}, err
	}
	result := protocol.UsageResult{Total: held.Total, Holes: held.Holes}
	for _, u := range held.Snapshots {
		result.Snapshots = append(result.Snapshots, protocol.SnapshotUsage{Snapshot: u.Snapshot, Own: u.Own, Shared: u.Shared})
	}
	for _, set := range held.Sets {
		result.Sets = append(result.Sets, protocol.HolderSet(set))
	}
	return result, nil
}
