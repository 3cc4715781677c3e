//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// begin opens a backup.
func (s *session) begin(ctx context.Context, r protocol.BeginRequest, e *exchange) (protocol.None, error) {
	if s.backup != nil {
		return protocol.None{}, fmt.Errorf("a backup was begun already: %w", errdefs.ErrInvalidArgument)
	}
	mounts := make([]archive.Mount, len(r.Mounts))
	for i, m := range r.Mounts {
		mounts[i] = s.mount(m)
	}
	if err := archive.CheckLimits(ctx, mounts, &e.counter); err != nil {
		return protocol.None{}, err
	}
	b, err := archive.Begin(ctx, s.store, r.Snapshot, mounts)
	if err != nil {
		return protocol.None{}, err
	}
	if err := b.Doubt(archive.Doubt(r.Doubt)); err != nil {
		return protocol.None{}, errors.Join(err, b.Discard())
	}
	s.backup = b
	return protocol.None{}, nil
}

func (s *session) mount(m protocol.Mount) archive.Mount {
	return archive.Mount{Number: m.Number, Key: m.Key, Path: filepath.Join(s.options.MountRoot, strconv.Itoa(m.Number)), Excluded: m.Excluded, Limits: archive.Limits(m.Limits)}
}
