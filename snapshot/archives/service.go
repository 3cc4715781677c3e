package archives

import (
	"context"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Service works on volumes and their archives. [Of] makes one of a [volumebackup.Service].
type Service interface {
	Store
	Workers
}

// Store reads and writes one store. Its methods are those of [volumebackup.Service].
type Store interface {
	Store() string                          // the volume in which archives are kept
	At(store volumebackup.StoreRef) Service // the same, with another store
	Prepare(ctx context.Context)
	Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (Backup, error)
	TakeLock(ctx context.Context, o volumebackup.LockOptions, p volumebackup.Progress) (Lock, error)
	OpenWorker(ctx context.Context, o volumebackup.WorkerOptions, p volumebackup.Progress) (Worker, error)
	Remove(ctx context.Context, o volumebackup.RemoveOptions) (volumebackup.Removed, error)
	Entries(ctx context.Context, snapshot string, archive int, root string, visit func(volumebackup.Entry)) error
	CheckJournal(ctx context.Context, workerID, text string) error
	ForgetJournal(ctx context.Context, workerID string) error
}

// Workers tells about workers, whatever store they mount.
type Workers interface {
	IsWorker(ctx context.Context, c container.Summary) (bool, error)
	Images(ctx context.Context) ([]image.Summary, error)
	Await(ctx context.Context, workerID string) error
}

// Backup is a backup under way, like [volumebackup.Backup].
type Backup interface {
	Store() (name, id string)
	Pass(ctx context.Context, mode volumebackup.Mode) ([]volumebackup.Archive, error)
	Publish(ctx context.Context, o volumebackup.Origin) ([]volumebackup.Archive, error)
	SweepDue() bool // after Publish: nobody has looked for archives without an image for a day
	Abandon() error
	Close() error
}

// Worker reads and writes the volumes that it mounts, like [volumebackup.Worker].
type Worker interface {
	Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (Backup, error)
	Check(ctx context.Context, snapshot string, t volumebackup.Target) error
	Plan(ctx context.Context, snapshot string, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error)
	Secure(ctx context.Context, safety string, now []volumebackup.Target, snapshot string, targets []volumebackup.Target) error
	Apply(ctx context.Context, snapshot string, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error)
	Release(ctx context.Context) error
	Close() error
}

// Lock keeps other operations off containers, and holds a journal, like [volumebackup.Lock].
type Lock interface {
	ID() string // of the container whose labels are the journal
	RecordJournal(ctx context.Context, text string) error
	ForgetJournal(ctx context.Context) error
	Held(ctx context.Context) error
	Release(ctx context.Context) error
	Abandon() error
	Close() error
}

// Of returns the [Service] of a [volumebackup.Service].
func Of(s *volumebackup.Service) Service { return service{s} }

type service struct{ *volumebackup.Service }

func (a service) At(store volumebackup.StoreRef) Service { return service{a.Service.At(store)} }

func (a service) Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (Backup, error) {
	backup, err := a.Service.Begin(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return backup, nil
}

func (a service) TakeLock(ctx context.Context, o volumebackup.LockOptions, p volumebackup.Progress) (Lock, error) {
	lock, err := a.Service.TakeLock(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (a service) OpenWorker(ctx context.Context, o volumebackup.WorkerOptions, p volumebackup.Progress) (Worker, error) {
	opened, err := a.Service.OpenWorker(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return worker{opened}, nil
}

type worker struct{ *volumebackup.Worker }

func (w worker) Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (Backup, error) {
	backup, err := w.Worker.Begin(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return backup, nil
}
