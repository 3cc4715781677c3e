//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/paths"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// restore makes one volume what it was, or says what that would take.
func (s *session) restore(ctx context.Context, r protocol.RestoreRequest, e *exchange) (protocol.RestoreResult, error) {
	root, err := parseRoot(r.Root)
	if err != nil {
		return protocol.RestoreResult{}, err
	}
	chosen, err := choiceOf(r.Chosen)
	if err != nil {
		return protocol.RestoreResult{}, err
	}
	if !r.DryRun {
		if err := s.narrow(); err != nil {
			return protocol.RestoreResult{}, err
		}
	}
	done, err := archive.Restore(ctx, s.store, archive.RestoreOptions{
		Snapshot: r.Snapshot, Archive: r.Archive, Root: root, Mount: s.mount(r.Mount), Chosen: chosen, DryRun: r.DryRun,
	}, e, &e.counter)
	if err != nil {
		return protocol.RestoreResult{}, err
	}
	return resultOf(done), nil
}

func choiceOf(c *protocol.Choice) (*archive.Choice, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // all is meant
	}
	filter, err := paths.New(c.Patterns)
	return &archive.Choice{Filter: filter, At: c.At}, err
}

func resultOf(done archive.RestoreResult) protocol.RestoreResult {
	totals := done.Changes
	return protocol.RestoreResult{
		Created: protocol.Totals(totals[archive.Created]), Changed: protocol.Totals(totals[archive.Changed]),
		Deleted: protocol.Totals(totals[archive.Deleted]), Entries: done.Entries, Bytes: done.Bytes, Skipped: done.Skipped,
	}
}
