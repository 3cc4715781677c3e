package snapshot

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Engines that cannot commit two containers of one image at the same time are asked again, and nobody takes the thaw after a
// failed commit for somebody else's. Whoever is busy for ever is an error, and leaves nothing.
func TestCommitsOfOneImageGetTheirTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		binds []string
		busy  int
		fails bool
	}{
		"without volumes, frozen by the engine": {nil, 5, false},
		"with volumes":                          {[]string{"data:/data"}, 5, false},
		"busy for ever":                         {nil, 1000, true},
		"busy for ever, with volumes":           {[]string{"data:/data"}, 1000, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				docker := enginetest.New()
				c := docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: tc.binds})
				assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
				before := docker.World()
				docker.BusyCommits = tc.busy
				var told []string
				created, err := engineOf(docker).Create(t.Context(), capture.Options{Container: "web"}, func(e plan.Event) { told = append(told, e.Text) })
				assert.Equal(t, docker.FindContainer("web").State, "running")
				if tc.fails {
					assert.ErrorContains(t, err, "already exists")
					assert.Equal(t, docker.World(), before)
					return
				}
				assert.NilError(t, err)
				assert.Assert(t, docker.FindImage(created.ImageID) != nil)
				assert.Equal(t, docker.BusyCommits, 0)
				assert.Assert(t, !strings.Contains(strings.Join(told, "\n"), "again"), "%q", told)
			})
		})
	}
}
