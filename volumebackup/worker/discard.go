//go:build linux

package worker

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

var errNoBackup = fmt.Errorf("no backup was begun: %w", errdefs.ErrInvalidArgument)

// discard drops the backup, if there is one.
func (s *session) discard(context.Context, protocol.DiscardRequest, *exchange) (protocol.None, error) {
	return protocol.None{}, s.drop()
}

func (s *session) drop() error {
	if s.backup == nil {
		return nil
	}
	b := s.backup
	s.backup = nil
	return b.Discard()
}
