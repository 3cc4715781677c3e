package snapshot

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// In place --volumes-from stays what it is, so that container must be there; or
// the volumes are named themselves.
func TestVolumesFromAContainerThatIsGone(t *testing.T) {
	s := captured()
	s.Mounts = []labels.Mount{{Type: "volume", Name: "data", Destination: "/data", Archive: &labels.Archive{Entries: 2}}}
	old := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "1"}}
	sp := &spec{host: container.HostConfig{VolumesFrom: []string{"holder:ro"}}}
	sp.inPlace(s, &old)
	assert.DeepEqual(t, sp.host.VolumesFrom, []string{"holder:ro"})
	holder := surroundings{containers: []container.Summary{{ID: "2", Names: []string{"/holder"}}}}
	assert.Equal(t, len(holder.problems(sp, "web")), 0)

	problems := surroundings{}.problems(sp, "web")
	assert.Equal(t, len(problems), 1)
	assert.Equal(t, problems[0].Kind, plan.ProblemNoContainer)
	assert.Equal(t, problems[0].Subject, "holder")
	_, rest := sp.leaveOut(problems)
	assert.Equal(t, len(rest), 0)
	assert.Equal(t, len(sp.host.VolumesFrom), 0)
	assert.DeepEqual(t, sp.host.Binds, []string{"data:/data:ro"})
}

func TestWhoIsNeededMustRun(t *testing.T) {
	for state, running := range map[string]bool{"running": true, "paused": true, "exited": false, "created": false, "restarting": false} {
		r := replacement{start: true, spec: &spec{host: container.HostConfig{NetworkMode: "container:side"}}}
		around := surroundings{containers: []container.Summary{{ID: "2", Names: []string{"/side"}, State: state}}}
		problems := r.peerProblems(around)
		assert.Equal(t, len(problems) == 0, running, state)
		if !running {
			assert.Equal(t, problems[0].Text, "this container uses the network of side, which does not run")
		}
		r.start = false
		assert.Equal(t, len(r.peerProblems(around)), 0)
	}
}

func TestOnlyThoseThatAreNeededAreStartedBefore(t *testing.T) {
	r := replacement{
		spec:   &spec{host: container.HostConfig{IpcMode: "container:2"}},
		others: []pending.Other{{ID: "1", Name: "base"}, {ID: "2", Name: "side"}, {ID: "3", Name: "reader"}},
	}
	assert.DeepEqual(t, r.peers(), r.others[:2])
	r.spec.host.IpcMode = ""
	assert.Equal(t, len(r.peers()), 0)
}
