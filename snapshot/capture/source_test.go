package capture

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestContainersThatCannotBeCaptured(t *testing.T) {
	tests := map[string]struct {
		is   container.InspectResponse
		want string
	}{
		"dead":            {withState(container.State{Dead: true}), "container web is dead"},
		"dead by status":  {withState(container.State{Status: "dead"}), "container web is dead"},
		"removing":        {withState(container.State{Status: "removing"}), "container web is being removed"},
		"running Windows": {withState(container.State{Running: true, Status: "running"}), "running Windows container"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(name, "Windows") {
				test.is.Platform = "windows"
			}
			assert.ErrorContains(t, Source{Container: test.is}.check(), test.want)
		})
	}
	stopped := withState(container.State{Status: "exited"})
	stopped.Platform = "windows"
	assert.NilError(t, Source{Container: stopped}.check())
}

func withState(state container.State) container.InspectResponse {
	return container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{Name: "/web", State: &state}}
}

func TestCaptureMountsKnowsAnonymousVolumesAndSubpaths(t *testing.T) {
	docker := enginetest.New()
	labelled := strings.Repeat("0f", 32)
	c := docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Mounts: []mount.Mount{
		{Type: mount.TypeVolume, Source: labelled, Target: "/labelled", VolumeOptions: &mount.VolumeOptions{Subpath: "deep"}},
		{Type: "npipe", Source: "x", Target: "/pipe"},
		{Type: mount.TypeTmpfs, Target: "/tmp"},
	}})
	docker.FindVolume(labelled).Labels = map[string]string{runconfig.LabelAnonymous: ""}
	mounts, err := capturerOf(docker).captureMounts(t.Context(), c.Inspect(false), nil)
	assert.NilError(t, err)
	assert.Equal(t, len(mounts), 4)
	assert.Assert(t, mounts[0].Anonymous && mounts[0].Destination == "/anonymous")
	assert.Assert(t, mounts[1].Anonymous && mounts[1].Subpath == "deep")
	assert.Equal(t, mounts[2].Skipped, skippedOther)
	assert.Equal(t, mounts[3].Skipped, skippedTmpfs)
}
