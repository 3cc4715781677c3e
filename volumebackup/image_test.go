package volumebackup

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/workerimage"
)

func TestWorkerForEnginesThatCannotHaveOne(t *testing.T) {
	_, err := imageFor("windows", "amd64")
	assert.ErrorContains(t, err, "volumes of windows engines")
}

// What counts are name, label and the image's content: what an image says of itself
// is no proof.
func TestWorkersAreKnownByWhatNoImageCanSay(t *testing.T) {
	plain := &dockerspec.DockerOCIImageConfig{ImageConfig: ocispec.ImageConfig{Entrypoint: workerimage.Entrypoint(), Labels: workerimage.Labels()}}
	with := func(change func(*dockerspec.DockerOCIImageConfig)) *dockerspec.DockerOCIImageConfig {
		c := *plain
		change(&c)
		return &c
	}
	purpose := map[string]string{LabelPurpose: "create"}
	lock := []string{"/cua-snapshot-0123456789ab"}
	for _, tc := range []struct {
		name     string
		image    string
		config   *dockerspec.DockerOCIImageConfig // of an image that this build does not know
		layers   int
		c        container.Summary
		isWorker bool
	}{
		{name: "of this build", image: ours(t), c: container.Summary{Names: lock, Labels: purpose}, isWorker: true},
		{name: "of this build, named by somebody else", image: ours(t), c: container.Summary{Names: []string{"/web"}, Labels: purpose}},
		{name: "of this build, without our labels", image: ours(t), c: container.Summary{Names: lock}},
		{name: "of another build", config: plain, layers: 1, c: container.Summary{Names: lock, Labels: purpose}, isWorker: true},
		{name: "of two layers", config: plain, layers: 2, c: container.Summary{Names: lock, Labels: purpose}},
		{name: "of an image that is gone", c: container.Summary{Names: lock, Labels: purpose}},
		{name: "whose labels its image gave it", layers: 1, c: container.Summary{Names: lock, Labels: purpose}, config: with(func(c *dockerspec.DockerOCIImageConfig) {
			c.Labels = map[string]string{labels.KeyVersion: labels.SchemaVersion, LabelPurpose: "create"}
		})},
		{name: "that runs something else", layers: 1, c: container.Summary{Names: lock, Labels: purpose}, config: with(func(c *dockerspec.DockerOCIImageConfig) {
			c.Entrypoint = []string{"/bin/sh"}
		})},
		{name: "with an environment", layers: 1, c: container.Summary{Names: lock, Labels: purpose}, config: with(func(c *dockerspec.DockerOCIImageConfig) {
			c.Env = []string{"GODEBUG=x"}
		})},
		{name: "with a health check", layers: 1, c: container.Summary{Names: lock, Labels: purpose}, config: with(func(c *dockerspec.DockerOCIImageConfig) {
			c.Healthcheck = &dockerspec.HealthcheckConfig{Test: []string{"CMD", "x"}}
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := workerImages{docker: &judgedEngine{config: tc.config, layers: tc.layers}}
			tc.c.ImageID = cmp.Or(tc.image, "sha256:unknown")
			is, err := w.isWorker(t.Context(), tc.c)
			assert.NilError(t, err)
			assert.Equal(t, is, tc.isWorker)
		})
	}
}

// judgedEngine has one image.
type judgedEngine struct {
	Docker

	config *dockerspec.DockerOCIImageConfig
	layers int
}

func (j *judgedEngine) ImageInspect(context.Context, string, ...client.ImageInspectOption) (image.InspectResponse, error) {
	if j.config == nil {
		return image.InspectResponse{}, cerrdefs.ErrNotFound
	}
	return image.InspectResponse{Config: j.config, RootFS: image.RootFS{Layers: make([]string, j.layers)}}, nil
}

func TestTailKeepsTheLastWords(t *testing.T) {
	var words tail
	for range 1000 {
		_, err := io.WriteString(&words, "0123456789")
		assert.NilError(t, err)
	}
	_, err := io.WriteString(&words, "the end\n")
	assert.NilError(t, err)
	assert.Assert(t, strings.HasSuffix(words.String(), "the end"))
	assert.Assert(t, len(words.String()) <= 4<<10)
	w := workerConn{}
	_, err = io.WriteString(&w.stderr, "out of memory")
	assert.NilError(t, err)
	assert.Error(t, w.Explain(errors.New("it ended")), "it ended (worker: out of memory)")
}
