//go:build linux

package worker

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/store"
)

// publish makes the backup durable and visible, and ends it.
func (s *session) publish(_ context.Context, r protocol.PublishRequest, e *exchange) (protocol.PublishResult, error) {
	if s.backup == nil {
		return protocol.PublishResult{}, errNoBackup
	}
	s.backup.Describe(store.Origin{
		Engine: r.Engine, ImageStore: r.ImageStore, Container: r.Container, ContainerName: r.ContainerName, Published: s.options.Now().UTC(),
	})
	s.backup.Record(r.Labels)
	archives, err := s.backup.Publish(e)
	if err = errors.Join(err, s.drop()); err != nil {
		return protocol.PublishResult{}, err
	}
	result := protocol.PublishResult{Archives: make([]protocol.Archive, len(archives)), LookDue: s.lookDue(r)}
	for i, a := range archives {
		result.Archives[i] = protocol.Archive{
			Number: a.Number, Key: a.Key, Root: hex.EncodeToString(a.Root[:]),
			Entries: a.Entries, Bytes: a.Bytes, Stored: a.Stored, Skipped: a.Skipped, Contradicted: a.Contradicted,
		}
	}
	return result, nil
}

// lookDue tells whether somebody should look for archives without an image.
func (s *session) lookDue(r protocol.PublishRequest) bool {
	if s.store.IsLookDue(s.options.Now()) {
		return true
	}
	return r.First && s.store.HasOthersOf(store.Origin{Engine: r.Engine, ImageStore: r.ImageStore, Container: r.Container})
}
