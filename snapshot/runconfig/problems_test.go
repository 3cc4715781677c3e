package runconfig

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// A restore in place leaves --volumes-from as it is, so that container must exist, unless the
// volumes are named instead.
func TestVolumesFromAContainerThatIsGone(t *testing.T) {
	s := captured()
	s.Mounts = []labels.Mount{{Type: "volume", Name: "data", Destination: "/data", Archive: &labels.Archive{Entries: 2}}}
	old := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "1"}}
	sp := &Spec{Host: container.HostConfig{VolumesFrom: []string{"holder:ro"}}}
	sp.InPlace(s, &old)
	assert.DeepEqual(t, sp.Host.VolumesFrom, []string{"holder:ro"})
	holder := Surroundings{Containers: []container.Summary{{ID: "2", Names: []string{"/holder"}}}}
	assert.Equal(t, len(holder.Problems(sp, "web")), 0)

	problems := Surroundings{}.Problems(sp, "web")
	assert.Equal(t, len(problems), 1)
	assert.Equal(t, problems[0].Kind, plan.ProblemNoContainer)
	assert.Equal(t, problems[0].Subject, "holder")
	_, rest := sp.LeaveOut(problems)
	assert.Equal(t, len(rest), 0)
	assert.Equal(t, len(sp.Host.VolumesFrom), 0)
	assert.DeepEqual(t, sp.Host.Binds, []string{"data:/data:ro"})
}
