//go:build linux

package worker

import (
	"context"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// check says whether a restore can be done, as far as that shows without comparing.
func (s *session) check(ctx context.Context, r protocol.CheckRequest, _ *exchange) (protocol.None, error) {
	root, err := parseRoot(r.Root)
	if err != nil {
		return protocol.None{}, err
	}
	o := archive.RestoreOptions{Snapshot: r.Snapshot, Archive: r.Archive, Root: root}
	if r.Mount != nil {
		o.Mount = s.mount(*r.Mount)
	} else if r.Beside {
		o.Beside = s.options.StoreRoot
	}
	return protocol.None{}, archive.Check(ctx, s.store, o)
}
