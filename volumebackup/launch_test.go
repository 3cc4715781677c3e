package volumebackup

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"gotest.tools/v3/assert"
)

// imageEngine is a fakeEngine that may have the worker's image.
type imageEngine struct {
	*fakeEngine
	has bool
}

func (f *imageEngine) ServerVersion(context.Context) (types.Version, error) {
	f.calls = append(f.calls, "version")
	return types.Version{Os: "linux", Arch: runtime.GOARCH}, nil
}

func (f *imageEngine) ImageInspect(_ context.Context, id string, _ ...client.ImageInspectOption) (image.InspectResponse, error) {
	f.calls = append(f.calls, "inspect image")
	if !f.has {
		return image.InspectResponse{}, fmt.Errorf("no such image: %s: %w", id, cerrdefs.ErrNotFound)
	}
	return image.InspectResponse{}, nil
}

func (f *imageEngine) ImageImport(_ context.Context, source image.ImportSource, _ string, _ image.ImportOptions) (io.ReadCloser, error) {
	f.calls = append(f.calls, "import")
	f.has = true
	_, err := io.Copy(io.Discard, source.Source)
	return io.NopCloser(strings.NewReader("")), err
}

func (f *imageEngine) ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, n *network.NetworkingConfig, p *ocispec.Platform, name string) (container.CreateResponse, error) {
	if !f.has {
		return container.CreateResponse{}, fmt.Errorf("no such image: %s: %w", config.Image, cerrdefs.ErrNotFound)
	}
	return f.fakeEngine.ContainerCreate(ctx, config, host, n, p, name)
}

// The start of the worker itself fails: there is nothing to attach to.
func (f *imageEngine) ContainerAttach(context.Context, string, container.AttachOptions) (types.HijackedResponse, error) {
	return types.HijackedResponse{}, cerrdefs.ErrNotImplemented
}

func TestTheImageIsLookedForOnceAndImportedIfItIsMissing(t *testing.T) {
	look := []string{"version", "inspect image"}
	for _, tc := range []struct {
		name    string
		has     bool
		between func(*imageEngine)
		want    []string
	}{
		{"it is there", true, func(*imageEngine) {}, look},
		{"it is not", false, func(*imageEngine) {}, append(append([]string{}, look...), "version", "inspect image", "import")},
		{"it was removed after it had been found", true, func(f *imageEngine) { f.has = false }, append(append([]string{}, look...), "version", "inspect image", "import")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &imageEngine{fakeEngine: newFakeEngine(), has: tc.has}
			l := &containerLauncher{docker: f}
			l.prepare(t.Context())
			tc.between(f)
			for range 2 {
				_, err := l.launch(t.Context(), job{name: testLock, wait: time.Second})
				assert.ErrorContains(t, err, "attach")
			}
			assert.DeepEqual(t, f.calls, append(tc.want, "remove "+testLock, "remove "+testLock))
		})
	}
}
