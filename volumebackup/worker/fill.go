//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// fill makes several volumes what one archive says.
func (s *session) fill(ctx context.Context, r protocol.FillRequest, e *exchange) (protocol.FillResult, error) {
	root, err := parseRoot(r.Root)
	if err != nil {
		return protocol.FillResult{}, err
	}
	if err := s.narrow(); err != nil {
		return protocol.FillResult{}, err
	}
	mounts := make([]archive.Mount, len(r.Mounts))
	for i, m := range r.Mounts {
		mounts[i] = s.mount(m)
	}
	done, err := archive.RestoreEach(ctx, s.store, archive.RestoreOptions{Snapshot: r.Snapshot, Archive: r.Archive, Root: root}, mounts, e, &e.counter)
	if err != nil {
		return protocol.FillResult{}, err
	}
	var result protocol.FillResult
	for _, one := range done {
		result.Volumes = append(result.Volumes, resultOf(one))
	}
	return result, nil
}
