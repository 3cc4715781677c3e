//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// secure makes sure that a restore can be rolled back.
func (s *session) secure(ctx context.Context, r protocol.SecureRequest, e *exchange) (protocol.SecureResult, error) {
	now, err := archiveRef(r.Now)
	if err != nil {
		return protocol.SecureResult{}, err
	}
	next, err := archiveRef(r.Next)
	if err != nil {
		return protocol.SecureResult{}, err
	}
	done, err := archive.Secure(ctx, s.store, archive.SecureOptions{Now: now, Next: next, Mount: s.mount(r.Mount)}, e, &e.counter)
	if err != nil {
		return protocol.SecureResult{}, err
	}
	return protocol.SecureResult{Checked: done.Checked, Repaired: done.Repaired}, nil
}

func archiveRef(r protocol.ArchiveRef) (archive.Ref, error) {
	root, err := parseRoot(r.Root)
	return archive.Ref{Snapshot: r.Snapshot, Archive: r.Archive, Root: root}, err
}
