//go:build linux

package worker

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/archive"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

var modes = map[protocol.Mode]archive.Mode{
	protocol.Live: archive.Live, protocol.Frozen: archive.Frozen, protocol.Idle: archive.Idle,
}

// pass reads what changed. A pass that fails ends the backup: what it has stored is not worth keeping.
func (s *session) pass(ctx context.Context, r protocol.PassRequest, e *exchange) (protocol.PassResult, error) {
	if s.backup == nil {
		return protocol.PassResult{}, errNoBackup
	}
	found, err := s.backup.Pass(ctx, modes[r.Mode], e, &e.counter)
	if err != nil {
		return protocol.PassResult{}, errors.Join(err, s.drop())
	}
	result := protocol.PassResult{Mounts: make([]protocol.PassMount, len(found)), Archives: make([]protocol.Archive, len(found))}
	for i, f := range found {
		result.Mounts[i] = protocol.PassMount{Number: f.Number, Entries: f.Entries, Bytes: f.Bytes, Read: f.Read}
		result.Archives[i] = protocol.Archive{
			Number: f.Number, Key: f.Key, Root: hex.EncodeToString(f.Root[:]),
			Entries: f.Entries, Bytes: f.Bytes, Stored: f.Stored, Devices: f.Needs.Devices, Trusted: f.Needs.Trusted, Excluded: f.Left,
		}
	}
	return result, nil
}
