package snapshot

import (
	"context"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Volumes archives what is inside Docker volumes; [Archives] does.
type Volumes interface {
	VolumeStore
	VolumeWorkers
}

// VolumeStore is the part about what is in a store.
type VolumeStore interface {
	Store() string                          // the volume in which archives are kept
	At(store volumebackup.StoreRef) Volumes // the same, with another store
	Prepare(ctx context.Context)
	Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (VolumeBackup, error)
	OpenRestore(ctx context.Context, o volumebackup.RestoreOptions, p volumebackup.Progress) (VolumeWorker, error)
	Remove(ctx context.Context, o volumebackup.RemoveOptions) (volumebackup.Removed, error)
	Entries(ctx context.Context, snapshot string, archive int, root string, visit func(volumebackup.Entry)) error
	CheckJournal(ctx context.Context, workerID, text string) error
	ForgetJournal(ctx context.Context, workerID string) error
}

// VolumeWorkers is the part about workers, whatever store they have.
type VolumeWorkers interface {
	IsWorker(ctx context.Context, c container.Summary) (bool, error)
	Images(ctx context.Context) ([]image.Summary, error)
	Await(ctx context.Context, workerID string) error
}

// VolumeBackup is a backup under way; [volumebackup.Backup] is one.
type VolumeBackup interface {
	Store() (name, id string)
	Pass(ctx context.Context, mode volumebackup.Mode) ([]volumebackup.Archive, error)
	Publish(ctx context.Context, o volumebackup.Origin) ([]volumebackup.Archive, error)
	SweepDue() bool // once it is published: nobody has looked for a day whether images are gone
	Abandon() error
	Close() error
}

// VolumeWorker sees the volumes that it may restore, and may hold a lock;
// [volumebackup.Restore] is one.
type VolumeWorker interface {
	VolumeLock
	Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (VolumeBackup, error)
	Check(ctx context.Context, snapshot string, t volumebackup.Target) error
	Plan(ctx context.Context, snapshot string, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error)
	Secure(ctx context.Context, safety string, now []volumebackup.Target, snapshot string, targets []volumebackup.Target) error
	Apply(ctx context.Context, snapshot string, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error)
}

// VolumeLock is the part of a worker that holds a lock and a journal.
type VolumeLock interface {
	ID() string // of its container
	RecordJournal(ctx context.Context, text string) error
	ForgetJournal(ctx context.Context) error
	Held(ctx context.Context) error
	Release(ctx context.Context) error
	Abandon() error
	Close() error
}

// Archives makes [Volumes] of a service.
func Archives(s *volumebackup.Service) Volumes { return archives{s} }

type archives struct{ *volumebackup.Service }

func (a archives) At(store volumebackup.StoreRef) Volumes { return archives{a.Service.At(store)} }

func (a archives) Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (VolumeBackup, error) {
	backup, err := a.Service.Begin(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return backup, nil
}

func (a archives) OpenRestore(ctx context.Context, o volumebackup.RestoreOptions, p volumebackup.Progress) (VolumeWorker, error) {
	worker, err := a.Service.OpenRestore(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return volumeWorker{worker}, nil
}

type volumeWorker struct{ *volumebackup.Restore }

func (w volumeWorker) Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (VolumeBackup, error) {
	backup, err := w.Restore.Begin(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return backup, nil
}
