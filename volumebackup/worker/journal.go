//go:build linux

package worker

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// journal records the journal of an operation, checks it or forgets it.
func (s *session) journal(_ context.Context, r protocol.JournalRequest, _ *exchange) (done protocol.None, err error) {
	switch r.Act {
	case protocol.RecordJournal:
		return done, s.store.RecordOperation(r.Worker, r.Text, s.options.Now())
	case protocol.CheckJournal:
		return done, s.store.CheckOperation(r.Worker, r.Text)
	case protocol.ForgetJournal:
		return done, s.store.ForgetOperation(r.Worker)
	}
	return done, fmt.Errorf("journal %.100q: %w", r.Act, errdefs.ErrInvalidArgument)
}
