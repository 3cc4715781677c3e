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
		needs := func(start bool) *member {
			return &member{Start: start, Spec: &runconfig.Spec{Host: container.HostConfig{NetworkMode: "container:side"}}}
		}
		around := runconfig.Surroundings{Containers: []container.Summary{{ID: "2", Names: []string{"/side"}, State: state}}}
		m := needs(true)
		m.peerProblems(&group{members: []*member{m}}, around)
		assert.Equal(t, len(m.problems) == 0, running, state)
		if !running {
			assert.Equal(t, m.problems[0].Text, "this container uses the network of side, which does not run")
		}
		m = needs(false)
		m.peerProblems(&group{members: []*member{m}}, around)
		assert.Equal(t, len(m.problems), 0)
	}
}

func TestOnlyThoseThatAreNeededAreStartedBefore(t *testing.T) {
	m := &member{Start: true, Spec: &runconfig.Spec{Host: container.HostConfig{IpcMode: "container:2"}}}
	g := &group{
		members: []*member{m},
		others:  []pending.Other{{ID: "1", Name: "base"}, {ID: "2", Name: "side"}, {ID: "3", Name: "reader"}},
	}
	assert.DeepEqual(t, g.peers(), g.others[:2])
	m.Spec.Host.IpcMode = ""
	assert.Equal(t, len(g.peers()), 0)
}

func TestADeadContainerIsNotReplaced(t *testing.T) {
	docker := enginetest.New()
	web := docker.Run(t, "web")
	s := snapshotOf(t, docker, capture.Options{Container: "web"})
	web.State = "dead"
	before := docker.World()
	_, err := replacerOf(docker).Replace(t.Context(), []Options{{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(s.ID)}}}, nil)
	problems, ok := errors.AsType[*plan.ProblemsError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, problems.Problems[0].Kind, plan.ProblemDead)
	assert.Equal(t, docker.World(), before)
}
