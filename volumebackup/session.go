package volumebackup

import (
	"context"
	"errors"
	"fmt"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// session is the conversation with a worker that runs.
type session struct {
	conn    conn
	client  *protocol.Client
	emit    func(protocol.Event)
	volumes map[int]string // names, by the number of the mount
	store   string         // the volume in which archives are kept
	storeID string         // tells it from others of its name; empty: it has no ID
	shared  bool           // other engines may have the same store
}

func (s *Service) start(ctx context.Context, j job, p Progress) (*session, error) {
	j.store, j.wait, j.tell = s.store, s.lockTimeout, p
	c, err := s.launch(ctx, j)
	if none, ok := errors.AsType[*NoStoreError](err); ok {
		return nil, none // it says what is missing: no worker was needed to see that
	}
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	volumes := make(map[int]string, len(j.mounts))
	for _, m := range j.mounts {
		volumes[m.Number] = m.Volume
	}
	client := protocol.NewClient(c)
	client.LockTimeout = s.lockTimeout
	return &session{conn: c, client: client, emit: p.naming(volumes), volumes: volumes, store: s.store.Name, storeID: s.store.id(), shared: s.store.isShared()}, nil
}

// Close ends the conversation and removes the worker. What was not published is dropped.
func (s *session) Close() error { return s.client.Close() }

// ID is that of the worker's container.
func (s *session) ID() string { return s.conn.ID() }

// Abandon ends the worker and leaves its container to whoever recovers the operation.
func (s *session) Abandon() error { return s.conn.Abandon() }

// Release frees the lock, at once and for good: from then on the journal is that of an operation that is over, whatever
// happens to this process.
func (s *session) Release(ctx context.Context) error { return s.conn.Release(ctx) }

// Held fails if the lock is not held any more: with [ErrLost] if the worker has ended, or somebody else has set it
// aside.
func (s *session) Held(ctx context.Context) error { return s.conn.Held(ctx) }

// explain says why the worker ended, if it did.
func (s *session) explain(err error) error {
	if err == nil {
		return nil
	}
	return s.asFull(s.conn.Explain(err))
}
