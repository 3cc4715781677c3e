//go:build linux

package worker

import (
	"context"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// extract sends a part of an archive as a tar.
func (s *session) extract(ctx context.Context, r protocol.ExtractRequest, e *exchange) (protocol.ExtractResult, error) {
	root, err := parseRoot(r.Root)
	if err != nil {
		return protocol.ExtractResult{}, err
	}
	link, err := archive.Extract(ctx, s.store, archive.ExtractOptions{
		Ref:  archive.Ref{Snapshot: r.Snapshot, Archive: r.Archive, Root: root},
		Path: string(r.Path), Directory: r.Directory, Follow: r.Follow, Look: r.Look, Name: string(r.Name),
	}, e.bytes, e, &e.counter)
	switch {
	case errors.Is(err, archive.ErrNoEntry):
		return protocol.ExtractResult{Missing: true}, nil
	case link != nil:
		return protocol.ExtractResult{Link: &protocol.Link{Path: protocol.Path(link.Path), Target: protocol.Path(link.Target)}}, nil
	}
	return protocol.ExtractResult{}, err
}
