//go:build linux

package worker

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/manifest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// check says whether a restore can be done, as far as that shows without comparing.
func (s *session) check(ctx context.Context, r *protocol.CheckRequest) error {
	root, err := parseRoot(r.Root)
	if err != nil {
		return err
	}
	o := archive.RestoreOptions{Snapshot: r.Snapshot, Archive: r.Archive, Root: root}
	if r.Mount != nil {
		o.Mount = s.mount(*r.Mount)
	} else if r.Beside {
		o.Beside = s.options.StoreRoot
	}
	return archive.Check(ctx, s.store, o)
}

// secure makes sure that a restore can be undone.
func (s *session) secure(ctx context.Context, r *protocol.SecureRequest, e *emitter) (protocol.Result, error) {
	now, err := archiveRef(r.Now)
	if err != nil {
		return protocol.Result{}, err
	}
	next, err := archiveRef(r.Next)
	if err != nil {
		return protocol.Result{}, err
	}
	done, err := archive.Secure(ctx, s.store, archive.SecureOptions{Now: now, Next: next, Mount: s.mount(r.Mount)}, e, &e.counter)
	if err != nil {
		return protocol.Result{}, err
	}
	return protocol.Result{Secure: &protocol.SecureResult{Checked: done.Checked, Repaired: done.Repaired}}, nil
}

func archiveRef(r protocol.ArchiveRef) (archive.Ref, error) {
	root, err := parseRoot(r.Root)
	return archive.Ref{Snapshot: r.Snapshot, Archive: r.Archive, Root: root}, err
}

func (s *session) restore(ctx context.Context, r *protocol.RestoreRequest, e *emitter) (protocol.Result, error) {
	root, err := parseRoot(r.Root)
	if err != nil {
		return protocol.Result{}, err
	}
	done, err := archive.Restore(ctx, s.store, archive.RestoreOptions{
		Snapshot: r.Snapshot, Archive: r.Archive, Root: root, Mount: s.mount(r.Mount), DryRun: r.DryRun,
	}, e, &e.counter)
	if err != nil {
		return protocol.Result{}, err
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
	return protocol.Result{Restore: &result}, nil
}

var changes = map[archive.ChangeKind]protocol.Change{
	archive.Created: protocol.Created, archive.Changed: protocol.Changed, archive.Deleted: protocol.Deleted,
}

// parseRoot reads the root of an archive; none if it is empty.
func parseRoot(root string) (*manifest.Sum, error) {
	if root == "" {
		return nil, nil //nolint:nilnil // no root is no error
	}
	var sum manifest.Sum
	decoded, err := hex.DecodeString(root)
	if err != nil || len(decoded) != len(sum) {
		return nil, fmt.Errorf("root %q of archive: %w", root, errdefs.ErrInvalidArgument)
	}
	copy(sum[:], decoded)
	return &sum, nil
}
