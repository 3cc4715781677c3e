//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// usage tells what each snapshot holds in the store.
func (s *session) usage(ctx context.Context, _ protocol.UsageRequest, _ *exchange) (protocol.UsageResult, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.UsageResult{}, err
	}
	defer unlock()
	snapshots, total, err := s.store.Usage(ctx)
	if err != nil {
		return protocol.UsageResult{}, err
	}
	result := protocol.UsageResult{Total: total}
	for _, u := range snapshots {
		result.Snapshots = append(result.Snapshots, protocol.SnapshotUsage{Snapshot: u.Snapshot, Own: u.Own, Shared: u.Shared})
	}
	return result, nil
}
