package volumebackup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// LockName is the name of the worker that works on a container's volumes.
func LockName(containerID string) string {
	const shown = 12
	if len(containerID) > shown {
		containerID = containerID[:shown]
	}
	return namePrefix + containerID
}

// IsLockOf tells by its name whether a worker holds the lock of a container, or held it before it was set aside.
func IsLockOf(worker, containerID string) bool {
	lock := LockName(containerID)
	return worker == lock || strings.HasPrefix(worker, lock+"-")
}

// LockedError means that another operation on the container is under way.
type LockedError struct {
	Holder  string // the worker's container name
	Purpose string // what it is doing
	Paused  bool   // somebody has paused it
}

func (e *LockedError) Error() string {
	state := ""
	if e.Paused {
		state = ", which is paused"
	}
	return fmt.Sprintf("another snapshot operation is under way (%s, in container %s%s)", e.Purpose, e.Holder, state)
}

// Unwrap gives the error its class.
func (e *LockedError) Unwrap() error { return cerrdefs.ErrConflict }

// lockedBy is the error for a lock that a live worker holds.
func lockedBy(worker container.InspectResponse) *LockedError {
	return &LockedError{
		Holder: strings.TrimPrefix(worker.Name, "/"), Purpose: worker.Config.Labels[LabelPurpose], Paused: worker.State.Status == container.StatePaused,
	}
}

// settled ends the name of a worker whose operation is over.
const settled = "-settled"

// IsSettled tells by the name of a worker that its operation is over: done, or rolled back.
func IsSettled(workerID, name string) bool { return name == SettledName(workerID) }

// SettledName is the name of a worker whose operation is over. The engine gives it once: whoever clears up after a worker
// that is dead starts one of this name first, and then the operation can never be settled.
func SettledName(workerID string) string {
	const shown = 6
	return namePrefix + workerID[:min(shown, len(workerID))] + settled
}

// ErrLost means that a worker which held a lock or a journal has ended, or that another command took it for dead.
var ErrLost = errors.New("the worker has ended, or another command took it for dead")

// LockOptions say what is locked, and what the lock is to keep meanwhile.
type LockOptions struct {
	Containers []string          // their IDs
	Purpose    string            // for people, and for the journal
	Journal    map[string]string // labels that tell another process what to recover if this one dies
	Freezes    []string          // IDs of containers that may be frozen while the lock is held
	Volumes    []string          // that the engine must not remove while the lock is held
	// MakeStore says that there may be no store yet. Without it TakeLock fails then.
	MakeStore bool
}

// Lock keeps every other operation off some containers. Each of them has a worker of its own whose name is the lock. It
// reads and writes no volume: a [Worker] does.
type Lock struct {
	journal *session // that has the journal, and holds the volumes: the last one that was taken
	others  []*session
}

// JournalLock is the name of the worker that has the journal of a lock of these containers.
func JournalLock(containers []string) string { return LockName(slices.Max(containers)) }

// TakeLock locks containers: all of them, or none. It waits for other operations on them. It takes them in the order
// of their IDs, so that two operations on the same containers do not wait for each other. The journal comes with the
// last one: whoever sees it sees an operation that has all its locks, and waits for none.
func (s *Service) TakeLock(ctx context.Context, o LockOptions, p Progress) (*Lock, error) {
	ids := slices.Sorted(slices.Values(o.Containers))
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil, fmt.Errorf("lock no container: %w", cerrdefs.ErrInvalidArgument)
	}
	l := &Lock{}
	last := len(ids) - 1
	for _, id := range ids[:last] {
		other, err := s.start(ctx, job{name: LockName(id), purpose: o.Purpose, rights: toHold}, p)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.others = append(l.others, other)
	}
	journal, err := s.start(ctx, o.job(ids[last]), p)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.journal = journal
	return l, nil
}

// job is the worker that has the journal.
func (o LockOptions) job(id string) job {
	r := toLock
	r.makesStore = o.MakeStore
	j := job{name: LockName(id), purpose: o.Purpose, journal: o.Journal, frozen: o.Freezes, rights: r}
	for i, name := range o.Volumes {
		j.mounts = append(j.mounts, Mount{Number: i, Volume: name})
	}
	return j
}

// ID is that of the container that has the journal.
func (l *Lock) ID() string { return l.journal.ID() }

// RecordJournal notes in the store, durably, that the lock has this journal. It is called before anything is changed.
func (l *Lock) RecordJournal(ctx context.Context, text string) error {
	return l.journal.journal(ctx, protocol.JournalRequest{Act: protocol.RecordJournal, Worker: l.ID(), Text: text})
}

// ForgetJournal drops what the store notes of the lock, whose operation is over.
func (l *Lock) ForgetJournal(ctx context.Context) error {
	return l.journal.journal(ctx, protocol.JournalRequest{Act: protocol.ForgetJournal, Worker: l.ID()})
}

// Held fails if any of the containers is not locked any more: with [ErrLost] if its worker has ended, or somebody else
// has set its journal aside.
func (l *Lock) Held(ctx context.Context) error {
	for _, s := range l.all() {
		if err := s.Held(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Release says that the operation is over, at once and for good, and frees the containers. From then on nobody
// recovers what the journal says, whatever happens to this process.
func (l *Lock) Release(ctx context.Context) error {
	if err := l.journal.Release(ctx); err != nil {
		return err
	}
	for _, other := range l.others {
		_ = other.Close() // Close says what is wrong: the operation is over in any case
	}
	return nil
}

// Abandon frees the containers and leaves the journal to whoever recovers the operation.
func (l *Lock) Abandon() error {
	err := l.journal.Abandon()
	for _, other := range l.others {
		err = errors.Join(err, other.Close())
	}
	return err
}

// Close frees the containers and removes the journal.
func (l *Lock) Close() error {
	var failed error
	for _, s := range l.all() {
		failed = errors.Join(failed, s.Close())
	}
	return failed
}

func (l *Lock) all() []*session {
	if l.journal == nil {
		return l.others
	}
	return append([]*session{l.journal}, l.others...)
}
