package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"gotest.tools/v3/assert"
	testpoll "gotest.tools/v3/poll"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// contractDocker is the part of an engine that the contract suite needs: what this program calls,
// and what prepares for that.
type contractDocker interface {
	dockerop.Docker
	NetworkCreate(ctx context.Context, name string, options network.CreateOptions) (network.CreateResponse, error)
	NetworkRemove(ctx context.Context, name string) error
}

// contractPrefix begins the names of everything that the suite makes. The engine
// needs an image busybox, and nothing else.
const contractPrefix = "contract-"

// runContract checks that an engine behaves as this program relies on. A decision in the code
// follows from each of these behaviours.
func runContract(t *testing.T, newEngine func(t *testing.T) contractDocker) {
	t.Helper()
	for _, behaviours := range []map[string]func(*testing.T, contractEngine){
		imageBehaviours(), removeBehaviours(), commitBehaviours(), createBehaviours(), runBehaviours(), execBehaviours(),
	} {
		for name, check := range behaviours {
			t.Run(name, func(t *testing.T) { check(t, contractEngine{newEngine(t)}) })
		}
	}
}

func TestFakeDockerKeepsTheContract(t *testing.T) {
	runContract(t, func(*testing.T) contractDocker { return New() })
}

// contractEngine makes things that are removed after the test.
type contractEngine struct{ contractDocker }

// image imports one with a single file; its configuration is what changes say.
func (c contractEngine) image(t *testing.T, tag string, changes ...string) string {
	t.Helper()
	answer, err := c.ImageImport(t.Context(), image.ImportSource{Source: tarFile(t, tag), SourceName: "-"}, "", image.ImportOptions{
		Message: "made by the contract suite", Changes: append(changes, fmt.Sprintf("LABEL made-for=%x", t.Name())), // or equal images would be one
	})
	assert.NilError(t, err)
	defer answer.Close()
	id, err := dockerop.LastStatus(answer)
	assert.NilError(t, err)
	c.cleanup(t, func(ctx context.Context) error { return c.forceRemoveImage(ctx, id) })
	if tag != "" {
		c.tag(t, id, tag)
	}
	return id
}

// tarFile is an archive of one file with that content.
func tarFile(t *testing.T, content string) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	assert.NilError(t, w.WriteHeader(&tar.Header{Name: "file", Mode: 0o600, Size: int64(len(content))}))
	_, err := w.Write([]byte(content))
	assert.NilError(t, err)
	assert.NilError(t, w.Close())
	return &b
}

func (c contractEngine) tag(t *testing.T, id, ref string) {
	t.Helper()
	assert.NilError(t, c.ImageTag(t.Context(), id, ref))
	c.cleanup(t, func(ctx context.Context) error { return c.forceRemoveImage(ctx, ref) })
}

func (c contractEngine) forceRemoveImage(ctx context.Context, word string) error {
	_, err := c.ImageRemove(ctx, word, image.RemoveOptions{Force: true, PruneChildren: true})
	return err
}

// container makes one of busybox, unless config says something else.
func (c contractEngine) container(t *testing.T, name string, config *container.Config, host *container.HostConfig) string {
	t.Helper()
	if config.Image == "" {
		config.Image = "busybox"
	}
	if len(config.Cmd) == 0 {
		config.Cmd = []string{"sleep", "600"}
	}
	made, err := c.ContainerCreate(t.Context(), config, host, nil, nil, contractPrefix+name)
	assert.NilError(t, err)
	c.cleanup(t, func(ctx context.Context) error { return c.forceRemoveContainer(ctx, made.ID) })
	return made.ID
}

func (c contractEngine) forceRemoveContainer(ctx context.Context, id string) error {
	return c.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
}

func (c contractEngine) running(t *testing.T, name string) string {
	t.Helper()
	id := c.container(t, name, &container.Config{}, &container.HostConfig{})
	assert.NilError(t, c.ContainerStart(t.Context(), id, container.StartOptions{}))
	return id
}

// commit makes an untagged image of a container.
func (c contractEngine) commit(t *testing.T, id string, options container.CommitOptions) image.InspectResponse {
	t.Helper()
	made, err := c.ContainerCommit(t.Context(), id, options)
	assert.NilError(t, err)
	c.cleanup(t, func(ctx context.Context) error { return c.forceRemoveImage(ctx, made.ID) })
	return c.inspectImage(t, made.ID)
}

func (c contractEngine) cleanup(t *testing.T, remove func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		if err := remove(context.WithoutCancel(t.Context())); err != nil && !cerrdefs.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func (c contractEngine) inspectImage(t *testing.T, word string) image.InspectResponse {
	t.Helper()
	found, err := c.ImageInspect(t.Context(), word)
	assert.NilError(t, err)
	return found
}

func (c contractEngine) inspect(t *testing.T, word string) container.InspectResponse {
	t.Helper()
	found, _, err := c.ContainerInspectWithRaw(t.Context(), word, false)
	assert.NilError(t, err)
	return found
}

func (c contractEngine) state(t *testing.T, word string) labels.State {
	t.Helper()
	return dockerop.ContainerState(c.inspect(t, word).State)
}

func (c contractEngine) hasImage(t *testing.T, word string) bool {
	t.Helper()
	_, err := c.ImageInspect(t.Context(), word)
	if !cerrdefs.IsNotFound(err) {
		assert.NilError(t, err)
	}
	return err == nil
}

// gone polls until what ask looks for is not there any more.
func gone(t *testing.T, ask func() error) {
	t.Helper()
	testpoll.WaitOn(t, func(testpoll.LogT) testpoll.Result {
		err := ask()
		if cerrdefs.IsNotFound(err) {
			return testpoll.Success()
		}
		return testpoll.Continue("still there: %v", err)
	})
}
