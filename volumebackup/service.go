package volumebackup

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// DefaultStore is the volume in which archives are kept.
const DefaultStore = "cua-snapshots"

// Docker is the part of the Engine API that this package calls.
type Docker interface {
	Workers
	Host
}

// Workers is the part about the containers that do the work.
type Workers interface {
	ContainerAttach(ctx context.Context, id string, options container.AttachOptions) (types.HijackedResponse, error)
	ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, networking *network.NetworkingConfig, platform *ocispec.Platform, name string) (container.CreateResponse, error)
	ContainerInspectWithRaw(ctx context.Context, id string, size bool) (container.InspectResponse, []byte, error)
	ContainerRename(ctx context.Context, id, name string) error
	ContainerRemove(ctx context.Context, id string, options container.RemoveOptions) error
	ContainerStart(ctx context.Context, id string, options container.StartOptions) error
	ContainerUnpause(ctx context.Context, id string) error
}

// Host is the part about everything around them.
type Host interface {
	Info(ctx context.Context) (system.Info, error)
	ImageInspect(ctx context.Context, id string, options ...client.ImageInspectOption) (image.InspectResponse, error)
	ImageList(ctx context.Context, options image.ListOptions) ([]image.Summary, error)
	ImageRemove(ctx context.Context, id string, options image.RemoveOptions) ([]image.DeleteResponse, error)
	ImageLoad(ctx context.Context, content io.Reader, options ...client.ImageLoadOption) (image.LoadResponse, error)
	ServerVersion(ctx context.Context) (types.Version, error)
	VolumeCreate(ctx context.Context, options volume.CreateOptions) (volume.Volume, error)
	VolumeInspect(ctx context.Context, name string) (volume.Volume, error)
}

var _ Docker = client.APIClient(nil)

// Progress receives what a worker tells, one event at a time. Nil discards it.
type Progress func(protocol.Event)

// naming has warnings say which volume they are about.
func (p Progress) naming(volumes map[int]string) Progress {
	if p == nil {
		return nil
	}
	return func(e protocol.Event) {
		if e.Warning != nil {
			e.Warning.Volume = volumes[e.Warning.Mount]
		}
		p(e)
	}
}

// status tells what is being waited for.
func (p Progress) status(text string) {
	if p != nil {
		p(protocol.Event{Type: protocol.TypeProgress, Progress: &protocol.Progress{Phase: text}})
	}
}

// warn tells of something that is not about a volume.
func (p Progress) warn(text string) {
	if p != nil {
		p(protocol.Event{Type: protocol.TypeWarning, Warning: &protocol.Warning{Message: text}})
	}
}

// Service archives volumes and brings them back.
type Service struct {
	docker        Docker
	launch        launcher
	images        *workerImages
	store         *storeVolume
	lockTimeout   time.Duration
	lostRetention time.Duration
	checkFraction float64
}

// launcher starts a worker and returns the conversation with it. What it
// returns first must be closed; closing removes the worker.
type launcher func(ctx context.Context, job job) (conn, error)

// conn is a conversation with a worker that runs.
type conn interface {
	io.ReadWriteCloser
	// ID is that of the worker's container.
	ID() string
	// Abandon ends the worker, but leaves its container: the journal.
	Abandon() error
	// Held fails with [ErrLost] if the worker is not at work under its name any more.
	Held(ctx context.Context) error
	// Release frees the lock, and marks the journal as settled.
	Release(ctx context.Context) error
	// Explain adds what the worker said on its way out to an error.
	Explain(err error) error
}

// job is what a worker is started for.
type job struct {
	store   *storeVolume
	name    string            // of the container; also the lock
	once    bool              // another container of that name is neither waited for nor cleared away
	purpose string            // for people and for the journal
	frozen  []string          // containers that are paused while it works
	hooks   []string          // commands that run in the captured container while it works
	journal map[string]string // more labels
	mounts  []Mount
	rights  rights
	beside  string        // the container whose PID namespace it shares
	wait    time.Duration // for the lock
	tell    Progress
}

// Mount is a volume, or a directory of the host, that a worker sees.
type Mount struct {
	Number   int
	Volume   string // its key, see [labels.Mount.Key]
	ReadOnly bool
	Make     *volume.CreateOptions // nil: the volume is there
}

// Config says how a [Service] works.
type Config struct {
	Store       string        // the store's volume; empty: [DefaultStore]
	LockTimeout time.Duration // how long to wait for another operation on the same container
	Plugin      string        // version of this program, which journals name
	// LostRetention is how long archives are kept whose image is gone; 0: [DefaultLostRetention].
	LostRetention time.Duration
	// CheckFraction is the part of seemingly unchanged files, from 0 to 1, that every tenth automatic backup of a
	// volume compares with the store.
	CheckFraction float64
}

// New returns a service that works through docker.
func New(docker Docker, c Config) *Service {
	if c.Store == "" {
		c.Store = DefaultStore
	}
	l := &containerLauncher{docker: docker, plugin: c.Plugin, images: workerImages{docker: docker}}
	s := &Service{docker: docker, launch: l.launch, images: &l.images, lockTimeout: c.LockTimeout, lostRetention: cmp.Or(c.LostRetention, DefaultLostRetention), checkFraction: c.CheckFraction}
	l.freezer = s.OpenFreezer
	return s.At(StoreRef{Name: c.Store})
}

// At returns a service that works in another store, and in all else is the same.
func (s *Service) At(store StoreRef) *Service {
	other := *s
	other.store = &storeVolume{docker: s.docker, StoreRef: store}
	return &other
}

// Prepare looks, in the background, for what the next worker needs, so that the worker starts sooner.
func (s *Service) Prepare(ctx context.Context) {
	go s.images.prepare(ctx)
	go func() { _ = s.store.find(ctx) }() // what fails is tried again then
}

// IsWorker tells our workers, of this build and of others, from containers that only look like workers.
func (s *Service) IsWorker(ctx context.Context, c container.Summary) (bool, error) {
	return s.images.isWorker(ctx, c)
}

// Images lists the images of workers, of this build and of others.
func (s *Service) Images(ctx context.Context) ([]image.Summary, error) { return s.images.list(ctx) }

// Store is the name of the volume in which archives are kept.
func (s *Service) Store() string { return s.store.Name }

// Archive describes one stored volume.
type Archive = protocol.Archive

// Mode says who may be writing during a pass.
type Mode = protocol.Mode

// The modes of a pass.
const (
	Live   = protocol.Live
	Frozen = protocol.Frozen
	Idle   = protocol.Idle
)
