//go:build linux

package worker

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

var errNoBackup = fmt.Errorf("no backup was begun: %w", errdefs.ErrInvalidArgument)

func (s *session) begin(ctx context.Context, r *protocol.BeginRequest) error {
	if s.backup != nil {
		return fmt.Errorf("a backup was begun already: %w", errdefs.ErrInvalidArgument)
	}
	mounts := make([]archive.Mount, len(r.Mounts))
	for i, m := range r.Mounts {
		mounts[i] = s.mount(m)
	}
	b, err := archive.Begin(ctx, s.store, r.Snapshot, mounts)
	if err != nil {
		return err
	}
	s.backup = b
	return nil
}

var modes = map[protocol.Mode]archive.Mode{
	protocol.Live: archive.Live, protocol.Frozen: archive.Frozen, protocol.Idle: archive.Idle,
}

// pass reads what changed. A pass that fails ends the backup: what it has stored is not worth keeping.
func (s *session) pass(ctx context.Context, r *protocol.PassRequest, e *emitter) (protocol.Result, error) {
	if s.backup == nil {
		return protocol.Result{}, errNoBackup
	}
	found, err := s.backup.Pass(ctx, modes[r.Mode], e, &e.counter)
	if err != nil {
		return protocol.Result{}, errors.Join(err, s.discard())
	}
	result := protocol.PassResult{Mounts: make([]protocol.PassMount, len(found)), Archives: make([]protocol.Archive, len(found))}
	for i, f := range found {
		result.Mounts[i] = protocol.PassMount{Number: f.Number, Entries: f.Entries, Bytes: f.Bytes, Read: f.Read}
		result.Archives[i] = protocol.Archive{
			Number: f.Number, Volume: f.Volume, Root: hex.EncodeToString(f.Root[:]),
			Entries: f.Entries, Bytes: f.Bytes, Stored: f.Stored, Devices: f.Needs.Devices, Trusted: f.Needs.Trusted,
		}
	}
	return protocol.Result{Pass: &result}, nil
}

func (s *session) publish(r *protocol.PublishRequest, e *emitter) (protocol.Result, error) {
	if s.backup == nil {
		return protocol.Result{}, errNoBackup
	}
	s.backup.Describe(store.Origin{
		Engine: r.Engine, ImageStore: r.ImageStore, Container: r.Container, ContainerName: r.ContainerName, Published: s.options.Now().UTC(),
	})
	archives, err := s.backup.Publish(e)
	if err = errors.Join(err, s.discard()); err != nil {
		return protocol.Result{}, err
	}
	result := protocol.PublishResult{Archives: make([]protocol.Archive, len(archives)), LookDue: s.store.IsLookDue(s.options.Now())}
	for i, a := range archives {
		result.Archives[i] = protocol.Archive{
			Number: a.Number, Volume: a.Volume, Root: hex.EncodeToString(a.Root[:]),
			Entries: a.Entries, Bytes: a.Bytes, Stored: a.Stored, Skipped: a.Skipped,
		}
	}
	return protocol.Result{Publish: &result}, nil
}

func (s *session) discard() error {
	if s.backup == nil {
		return nil
	}
	b := s.backup
	s.backup = nil
	return b.Discard()
}
