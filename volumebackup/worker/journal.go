//go:build linux

package worker

import (
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// journal records the journal of an operation, or looks for it.
func (s *session) journal(r *protocol.JournalRequest) error {
	switch r.Act {
	case protocol.RecordJournal:
		return s.store.RecordOperation(r.Worker, r.Text, s.options.Now())
	case protocol.CheckJournal:
		return s.store.CheckOperation(r.Worker, r.Text)
	case protocol.ForgetJournal:
		return s.store.ForgetOperation(r.Worker)
	}
	return fmt.Errorf("journal %.100q: %w", r.Act, errdefs.ErrInvalidArgument)
}
