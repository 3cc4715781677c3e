package replace

import (
	"errors"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestWhoIsNeededMustRun(t *testing.T) {
	for state, running := range map[string]bool{"running": true, "paused": true, "exited": false, "created": false, "restarting": false} {
		r := replacement{Start: true, Spec: &runconfig.Spec{Host: container.HostConfig{NetworkMode: "container:side"}}}
		around := runconfig.Surroundings{Containers: []container.Summary{{ID: "2", Names: []string{"/side"}, State: state}}}
		problems := r.peerProblems(around)
		assert.Equal(t, len(problems) == 0, running, state)
		if !running {
			assert.Equal(t, problems[0].Text, "this container uses the network of side, which does not run")
		}
		r.Start = false
		assert.Equal(t, len(r.peerProblems(around)), 0)
	}
}

func TestOnlyThoseThatAreNeededAreStartedBefore(t *testing.T) {
	r := replacement{
		Spec:   &runconfig.Spec{Host: container.HostConfig{IpcMode: "container:2"}},
		Others: []pending.Other{{ID: "1", Name: "base"}, {ID: "2", Name: "side"}, {ID: "3", Name: "reader"}},
	}
	assert.DeepEqual(t, r.peers(), r.Others[:2])
	r.Spec.Host.IpcMode = ""
	assert.Equal(t, len(r.peers()), 0)
}

func TestADeadContainerIsNotReplaced(t *testing.T) {
	docker := enginetest.New()
	web := docker.Run(t, "web")
	s := snapshotOf(t, docker, capture.Options{Container: "web"})
	web.State = "dead"
	before := docker.World()
	_, err := replacerOf(docker).Replace(t.Context(), Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(s.ID)}}, nil)
	problems, ok := errors.AsType[*plan.ProblemsError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, problems.Problems[0].Kind, plan.ProblemDead)
	assert.Equal(t, docker.World(), before)
}
