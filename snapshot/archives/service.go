package archives

import (
	"context"
	"io"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// Service works on volumes and their archives. [Of] makes one of a [volumebackup.Service].
type Service interface {
	Store
	Reader
	Workers
	Attachments
	Scales
	Walker
	Records
}

// Records are what a store knows of snapshots besides their archives.
type Records interface {
	Record(ctx context.Context, claim volumebackup.Claim, labels map[string]string) error
	Lost(ctx context.Context, seen volumebackup.Seen) ([]volumebackup.Lost, error)
}

// Attachments reads the files that were stored with snapshots.
type Attachments interface {
	Attachments(ctx context.Context, snapshot string, names []string, each func(name string, read func(out io.Writer) error) error) error
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
	CheckJournal(ctx context.Context, workerID, text string) error
	ForgetJournal(ctx context.Context, workerID string) error
}

// Reader reads archives, and changes nothing.
type Reader interface {
	Entries(ctx context.Context, o volumebackup.ListOptions, visit func(volumebackup.Entry)) error
	OpenExtractor(ctx context.Context, purpose string, p volumebackup.Progress) (Extractor, error)
	OpenComparer(ctx context.Context, o volumebackup.CompareOptions, p volumebackup.Progress) (Comparer, error)
	Verify(ctx context.Context, o volumebackup.VerifyOptions, p volumebackup.Progress) (volumebackup.Verified, error)
}

// Walker reads root filesystems of containers, on the engine.
type Walker interface {
	WalkRoot(ctx context.Context, o volumebackup.WalkOptions, p volumebackup.Progress) (volumebackup.Walked, error)
}

// Scales tell what a store holds.
type Scales interface {
	Usage(ctx context.Context) (volumebackup.Usage, error)
}

// Workers tells about workers, whatever store they mount.
type Workers interface {
	IsWorker(ctx context.Context, c container.Summary) (bool, error)
	Images(ctx context.Context) ([]image.Summary, error)
	Await(ctx context.Context, workerID string) error
	LoadImage(ctx context.Context) error
	OpenFreezer(ctx context.Context) (dockerop.Freezer, error)
}

// Backup is a backup under way, like [volumebackup.Backup].
type Backup interface {
	Store() (name, id string)
	Attach(ctx context.Context, name string, content io.Reader) (volumebackup.Attached, error)
	Pass(ctx context.Context, mode volumebackup.Mode) ([]volumebackup.Archive, error)
	Publish(ctx context.Context, o volumebackup.Origin) ([]volumebackup.Archive, error)
	SweepDue() bool // after Publish: nobody has looked for archives without an image for a day
	Abandon() error
	Close() error
}

// Worker reads and writes the volumes that it mounts, like [volumebackup.Worker].
type Worker interface {
	Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (Backup, error)
	Check(ctx context.Context, t volumebackup.Target) error
	Plan(ctx context.Context, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error)
	Secure(ctx context.Context, now, targets []volumebackup.Target) error
	Apply(ctx context.Context, targets []volumebackup.Target) ([]volumebackup.RestoreResult, error)
	Release(ctx context.Context) error
	Abandon() error
	Close() error
}

// Comparer compares trees of files, like [volumebackup.Comparer].
type Comparer interface {
	Diff(ctx context.Context, old, now volumebackup.ComparedTree, visit func(volumebackup.FileChange)) error
	Known(ctx context.Context, images []string) ([]volumebackup.KnownImage, error)
	Learn(ctx context.Context, o volumebackup.LearnOptions, write func(io.Writer) error) error
	Recall(ctx context.Context, walked string) ([]byte, error)
	Close() error
}

// Extractor reads files of archives, like [volumebackup.Extractor].
type Extractor interface {
	Extract(ctx context.Context, o volumebackup.ExtractOptions, volume string, out io.Writer) (*volumebackup.Link, error)
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

func (a service) OpenComparer(ctx context.Context, o volumebackup.CompareOptions, p volumebackup.Progress) (Comparer, error) {
	opened, err := a.Service.OpenComparer(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func (a service) OpenExtractor(ctx context.Context, purpose string, p volumebackup.Progress) (Extractor, error) {
	opened, err := a.Service.OpenExtractor(ctx, purpose, p)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

type worker struct{ *volumebackup.Worker }

func (w worker) Begin(ctx context.Context, o volumebackup.BackupOptions, p volumebackup.Progress) (Backup, error) {
	backup, err := w.Worker.Begin(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return backup, nil
}
