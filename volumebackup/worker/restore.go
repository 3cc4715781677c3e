//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// restore makes one volume what it was, or says what that would take.
func (s *session) restore(ctx context.Context, r protocol.RestoreRequest, e *exchange) (protocol.RestoreResult, error) {
	root, err := parseRoot(r.Root)
	if err != nil {
		return protocol.RestoreResult{}, err
	}
	done, err := archive.Restore(ctx, s.store, archive.RestoreOptions{
		Snapshot: r.Snapshot, Archive: r.Archive, Root: root, Mount: s.mount(r.Mount), DryRun: r.DryRun,
	}, e, &e.counter)
	if err != nil {
		return protocol.RestoreResult{}, err
	}
	totals := done.Changes.Totals
	result := protocol.RestoreResult{
		Created: protocol.Totals(totals[archive.Created]), Changed: protocol.Totals(totals[archive.Changed]),
		Deleted: protocol.Totals(totals[archive.Deleted]), Changes: make([]protocol.EntryChange, len(done.Changes.List)),
		Entries: done.Entries, Bytes: done.Bytes, Skipped: done.Skipped,
	}
	for i, c := range done.Changes.List {
		result.Changes[i] = protocol.EntryChange{Change: changes[c.Kind], Path: protocol.Path(c.Path), Bytes: c.Bytes}
	}
	return result, nil
}

var changes = map[archive.ChangeKind]protocol.Change{
	archive.Created: protocol.Created, archive.Changed: protocol.Changed, archive.Deleted: protocol.Deleted,
}
