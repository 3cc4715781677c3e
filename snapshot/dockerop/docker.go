package dockerop

import (
	"context"
	"fmt"
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker is the part of the Engine API that this program calls.
type Docker interface {
	Containers
	Lifecycle
	Execs
	Images
	Host
}

// Containers reads and describes containers.
type Containers interface {
	ContainerInspectWithRaw(ctx context.Context, id string, size bool) (container.InspectResponse, []byte, error)
	ContainerList(ctx context.Context, options container.ListOptions) ([]container.Summary, error)
	ContainerCommit(ctx context.Context, id string, options container.CommitOptions) (container.CommitResponse, error)
	ContainerLogs(ctx context.Context, id string, options container.LogsOptions) (io.ReadCloser, error)
	ContainerDiff(ctx context.Context, id string) ([]container.FilesystemChange, error)
	ContainerExport(ctx context.Context, id string) (io.ReadCloser, error)
	CopyFromContainer(ctx context.Context, id, path string) (io.ReadCloser, container.PathStat, error)
	ContainerStatPath(ctx context.Context, id, path string) (container.PathStat, error)
	ContainerStatsOneShot(ctx context.Context, id string) (container.StatsResponseReader, error)
}

// Lifecycle makes containers, changes and runs them, and removes them.
type Lifecycle interface {
	ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, networking *network.NetworkingConfig, platform *ocispec.Platform, name string) (container.CreateResponse, error)
	ContainerStart(ctx context.Context, id string, options container.StartOptions) error
	ContainerPause(ctx context.Context, id string) error
	ContainerUnpause(ctx context.Context, id string) error
	ContainerStop(ctx context.Context, id string, options container.StopOptions) error
	ContainerRename(ctx context.Context, id, name string) error
	ContainerUpdate(ctx context.Context, id string, config container.UpdateConfig) (container.UpdateResponse, error)
	ContainerRemove(ctx context.Context, id string, options container.RemoveOptions) error
}

// Execs runs commands in containers.
type Execs interface {
	ContainerExecCreate(ctx context.Context, id string, options container.ExecOptions) (container.ExecCreateResponse, error)
	ContainerExecAttach(ctx context.Context, exec string, options container.ExecAttachOptions) (types.HijackedResponse, error)
	ContainerExecInspect(ctx context.Context, exec string) (container.ExecInspect, error)
}

// Images reads, tags, makes and removes images.
type Images interface {
	ImageInspect(ctx context.Context, id string, options ...client.ImageInspectOption) (image.InspectResponse, error)
	ImageList(ctx context.Context, options image.ListOptions) ([]image.Summary, error)
	ImageTag(ctx context.Context, source, target string) error
	ImageRemove(ctx context.Context, id string, options image.RemoveOptions) ([]image.DeleteResponse, error)
	ImageImport(ctx context.Context, source image.ImportSource, ref string, options image.ImportOptions) (io.ReadCloser, error)
	ImageLoad(ctx context.Context, content io.Reader, options ...client.ImageLoadOption) (image.LoadResponse, error)
}

// Host is everything around containers and images: networks, volumes, events, the engine itself.
type Host interface {
	Info(ctx context.Context) (system.Info, error)
	Events(ctx context.Context, options eventtypes.ListOptions) (<-chan eventtypes.Message, <-chan error)
	NetworkList(ctx context.Context, options network.ListOptions) ([]network.Summary, error)
	NetworkConnect(ctx context.Context, network, container string, config *network.EndpointSettings) error
	NetworkDisconnect(ctx context.Context, network, container string, force bool) error
	VolumeCreate(ctx context.Context, options volume.CreateOptions) (volume.Volume, error)
	VolumeInspect(ctx context.Context, name string) (volume.Volume, error)
	VolumeList(ctx context.Context, options volume.ListOptions) (volume.ListResponse, error)
	VolumeRemove(ctx context.Context, name string, force bool) error
	ClientVersion() string
}

var _ Docker = client.APIClient(nil)

// Engine calls an engine. Its own methods are safe to interrupt and to repeat; the embedded ones
// are the plain calls of the API. It keeps no state and may be used by several goroutines.
type Engine struct {
	Docker
	freezer OpenFreezer
}

// New returns an engine that is called through docker. If it gets stuck, freezer helps.
func New(docker Docker, freezer OpenFreezer) *Engine { return &Engine{docker, freezer} }

// Describe puts what was being done before an error: "list networks: ...". It returns nil for nil.
func Describe(err error, doing string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
