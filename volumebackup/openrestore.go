package volumebackup

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/volume"
)

// RestoreOptions says which volumes are going to be restored.
type RestoreOptions struct {
	Lock     string            // ID of the container that is restored; empty: no lock is taken
	Worker   string            // name of the worker if it takes no lock; empty: any
	Purpose  string            // for people and for the journal
	Journal  map[string]string // more labels of the worker, for who has to repair what a crash left
	Freezes  []string          // IDs of containers that may be paused while it lives
	Volumes  []string
	Make     []volume.CreateOptions // those of the volumes that the engine makes together with the worker
	ReadOnly bool                   // nothing will be applied
	// Idle says that it only holds the volumes: nothing will be asked of it.
	Idle bool
	// MakeStore says that there may be no store yet: nothing is restored from it,
	// but something may be captured.
	MakeStore bool
	// Fill is set if the volumes are new, and only archives of which it is known what is in them are applied.
	Fill *Fill
}

// rights are what the worker has to be able to do.
func (o RestoreOptions) rights() rights {
	switch {
	case o.Lock != "":
		r := toLock
		r.makesStore = o.MakeStore
		return r
	case o.Idle:
		return toHold
	case len(o.Volumes) == 0:
		return toLook
	case o.ReadOnly:
		return toCompare
	case o.Fill != nil:
		return toFill(o.Fill.Devices, o.Fill.Trusted)
	}
	r := toReplace
	r.makesStore = o.MakeStore
	return r
}

// Restore is a worker that may hold a lock as well.
type Restore struct {
	*Worker
	lock Lock
}

// ID is that of the worker's container.
func (r *Restore) ID() string { return r.lock.ID() }

// RecordJournal notes in the store, durably, that the worker has this journal.
func (r *Restore) RecordJournal(ctx context.Context, text string) error {
	return r.lock.RecordJournal(ctx, text)
}

// ForgetJournal drops what the store notes of the worker.
func (r *Restore) ForgetJournal(ctx context.Context) error { return r.lock.ForgetJournal(ctx) }

// Held fails if the lock is not held any more.
func (r *Restore) Held(ctx context.Context) error { return r.lock.Held(ctx) }

// Abandon ends the worker and leaves its journal to whoever recovers the operation.
func (r *Restore) Abandon() error { return r.lock.Abandon() }

// OpenRestore starts a worker for restoring volumes. While it lives, the engine
// keeps the volumes, whatever happens to the containers that mount them.
func (s *Service) OpenRestore(ctx context.Context, o RestoreOptions, p Progress) (*Restore, error) {
	j := job{name: o.Worker, purpose: o.Purpose, journal: o.Journal, frozen: o.Freezes, rights: o.rights()}
	if o.Lock != "" {
		j.name = LockName(o.Lock)
	}
	for i, name := range o.Volumes {
		m := Mount{Number: i, Volume: name, ReadOnly: o.ReadOnly}
		if at := slices.IndexFunc(o.Make, func(v volume.CreateOptions) bool { return v.Name == name }); at >= 0 {
			m.Make = &o.Make[at]
		}
		j.mounts = append(j.mounts, m)
	}
	session, err := s.start(ctx, j, p)
	if err != nil {
		return nil, err
	}
	r := &Restore{Worker: &Worker{session: session, volumes: o.Volumes}, lock: Lock{first: session}}
	if o.ReadOnly { // else all volumes are there by now
		r.beside = s.store.isPlain()
	}
	return r, nil
}
