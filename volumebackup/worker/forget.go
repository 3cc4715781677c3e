//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// forget drops the stat caches of volumes that are gone.
func (s *session) forget(ctx context.Context, r protocol.ForgetRequest, _ *exchange) (protocol.None, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.None{}, err
	}
	defer unlock()
	for _, volume := range r.Volumes {
		if err := s.store.Forget(volume); err != nil {
			return protocol.None{}, err
		}
	}
	return protocol.None{}, nil
}
