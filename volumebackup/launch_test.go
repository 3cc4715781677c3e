package volumebackup

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// imageEngine is a fakeEngine that may have the worker's image, or somebody else's
// under its name.
type imageEngine struct {
	*fakeEngine
	id        string // of what bears the name; empty: nothing does
	used      string // of the image that the last container was made from
	busy      bool   // it cannot remove images now
	loaded    string // how the engine answers a load
	filesGone int    // how often a container cannot be made, because the image has lost its files
}

// ours is the ID that an engine gives to the image of these tests' own program.
func ours(t *testing.T) string {
	t.Helper()
	i, err := imageFor("linux", runtime.GOARCH)
	assert.NilError(t, err)
	return i.Manifest
}

func (f *imageEngine) ServerVersion(context.Context) (types.Version, error) {
	f.calls = append(f.calls, "version")
	return types.Version{Os: "linux", Arch: runtime.GOARCH}, nil
}

func (f *imageEngine) ImageInspect(_ context.Context, word string, _ ...client.ImageInspectOption) (image.InspectResponse, error) {
	f.calls = append(f.calls, "inspect image")
	if f.id == "" || word != f.id && strings.HasPrefix(word, "sha256:") {
		return image.InspectResponse{}, fmt.Errorf("no such image: %s: %w", word, cerrdefs.ErrNotFound)
	}
	return image.InspectResponse{ID: f.id}, nil
}

// ImageList lists, besides, an image of another build, and a snapshot of a container
// named worker.
func (f *imageEngine) ImageList(context.Context, image.ListOptions) ([]image.Summary, error) {
	return []image.Summary{{ID: "sha256:older"}, {ID: f.id}, {ID: "sha256:snapshot"}}, nil
}

func (f *imageEngine) ImageRemove(ctx context.Context, id string, _ image.RemoveOptions) ([]image.DeleteResponse, error) {
	f.calls = append(f.calls, "remove image "+id)
	if f.busy {
		<-ctx.Done()
	}
	return nil, ctx.Err()
}

func (f *imageEngine) ImageLoad(_ context.Context, content io.Reader, _ ...client.ImageLoadOption) (image.LoadResponse, error) {
	f.calls = append(f.calls, "load")
	i, err := imageFor("linux", runtime.GOARCH)
	f.id = i.Manifest
	if err == nil {
		_, err = io.Copy(io.Discard, content)
	}
	return image.LoadResponse{Body: io.NopCloser(strings.NewReader(f.loaded))}, err
}

func (f *imageEngine) ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, n *network.NetworkingConfig, p *ocispec.Platform, name string) (container.CreateResponse, error) {
	if f.filesGone > 0 {
		f.filesGone--
		return container.CreateResponse{}, fmt.Errorf("NotFound: parent snapshot sha256:1 does not exist: not found: %w", cerrdefs.ErrInternal)
	}
	if config.Image != f.id {
		return container.CreateResponse{}, fmt.Errorf("no such image: %s: %w", config.Image, cerrdefs.ErrNotFound)
	}
	f.used = config.Image
	return f.fakeEngine.ContainerCreate(ctx, config, host, n, p, name)
}

// The start of the worker itself fails: there is nothing to attach to.
func (f *imageEngine) ContainerAttach(context.Context, string, container.AttachOptions) (types.HijackedResponse, error) {
	return types.HijackedResponse{}, cerrdefs.ErrNotImplemented
}

// An engine may not be able to remove the images of other builds before this command has ended.
func TestNobodyWaitsForTheRemovalOfOtherImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &imageEngine{fakeEngine: newFakeEngine(), busy: true}
		images := workerImages{docker: f, judged: map[string]bool{"sha256:older": true, "sha256:snapshot": false}}
		start := time.Now()
		id, err := images.ensure(t.Context(), func(string) {})
		assert.NilError(t, err)
		assert.Equal(t, id, f.id)
		assert.Equal(t, time.Since(start), removalTime)
	})
}

// The container is made from the ID of an image whose content is known: somebody
// else may have given its name to another.
func TestTheImageIsLookedForOnceAndLoadedUnlessItIsOurs(t *testing.T) {
	look := []string{"version", "inspect image"}
	load := append(slices.Clone(look), "load", "inspect image", "remove image sha256:older")
	for _, tc := range []struct {
		name    string
		there   string
		between func(*imageEngine)
		want    []string
		told    int
	}{
		{name: "it is there", there: ours(t), want: look},
		{name: "it is not", want: slices.Concat(look, load)},
		{name: "it was removed after it had been found", there: ours(t), between: func(f *imageEngine) { f.id = "" }, want: slices.Concat(look, load)},
		{name: "its files were removed, and it is loaded again and again", there: ours(t), between: func(f *imageEngine) { f.filesGone = 3 }, want: slices.Concat(look, look, look, look)},
		{name: "somebody else's has its name", there: "sha256:evil", want: slices.Concat(look, load), told: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &imageEngine{fakeEngine: newFakeEngine(), id: tc.there}
			l := &containerLauncher{docker: f, images: workerImages{
				docker: f, judged: map[string]bool{"sha256:older": true, "sha256:snapshot": false},
			}}
			l.images.prepare(t.Context())
			if tc.between != nil {
				tc.between(f)
			}
			told := 0
			for range 2 {
				_, err := l.launch(t.Context(), job{store: &storeVolume{docker: f, StoreRef: StoreRef{Name: "s"}}, name: testLock, rights: toHold, wait: time.Second, tell: func(protocol.Event) { told++ }})
				assert.ErrorContains(t, err, "attach")
				assert.Equal(t, f.used, ours(t))
			}
			assert.DeepEqual(t, f.calls, append(tc.want, "remove "+testLock, "remove "+testLock))
			assert.Equal(t, told, tc.told)
		})
	}
}

// Another process has loaded the image at the same time.
func TestTheWorkersImageIsLoadedTwiceAtOnce(t *testing.T) {
	const refused = `{"errorDetail":{"message":"AlreadyExists: image \"worker:1\": already exists"},"error":"AlreadyExists: image \"worker:1\": already exists"}`
	f := &imageEngine{fakeEngine: newFakeEngine(), loaded: refused}
	images := workerImages{docker: f, judged: map[string]bool{"sha256:older": true, "sha256:snapshot": false}}
	id, err := images.ensure(t.Context(), func(string) {})
	assert.NilError(t, err)
	assert.Equal(t, id, f.id)
	f = &imageEngine{fakeEngine: newFakeEngine(), loaded: strings.ReplaceAll(refused, "already exists", "no space left on device")}
	images = workerImages{docker: f}
	_, err = images.ensure(t.Context(), func(string) {})
	assert.ErrorContains(t, err, "no space left on device")
}
