//go:build linux

package worker

import (
	"context"
	"fmt"
	"io"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// attach puts what the client sends into the backup.
func (s *session) attach(_ context.Context, r protocol.AttachRequest, e *exchange) (protocol.Attached, error) {
	if s.backup == nil {
		return protocol.Attached{}, errNoBackup
	}
	attached, err := s.backup.Attach(r.Name, e.bytes)
	return protocol.Attached(attached), err
}

// attachment sends an attachment.
func (s *session) attachment(ctx context.Context, r protocol.AttachmentRequest, e *exchange) (protocol.None, error) {
	unlock, err := s.store.Share(ctx)
	if err != nil {
		return protocol.None{}, err
	}
	defer unlock()
	content, err := s.store.OpenAttachment(r.Snapshot, r.Name)
	if err != nil {
		return protocol.None{}, err
	}
	_, err = io.Copy(e.bytes, content)
	_ = content.Close()
	if err != nil {
		return protocol.None{}, fmt.Errorf("send attachment %s: %w", r.Name, err)
	}
	return protocol.None{}, nil
}
