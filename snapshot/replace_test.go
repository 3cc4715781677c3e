package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// withTwo is an engine with a container web and its volume data, of which there is
// a snapshot web:one; now all are at two.
func withTwo(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{
		Binds: []string{"data:/data"}, RestartPolicy: container.RestartPolicy{Name: "always"},
	})
	assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
	web.Files = "one"
	docker.FindVolume("data").Content = "one"
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	web.Files = "two"
	docker.FindVolume("data").Content = "two"
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

func replaceOptions() replace.Options {
	return replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one", Waiting: runconfig.Waiting{Wait: true}}}
}

// replaceUntil has a restore in place of web:one die before a call that begins so,
// but so many of them later. Its workers do not know yet that they are orphans.
func replaceUntil(t *testing.T, f *enginetest.Docker, call string, skip int) {
	t.Helper()
	f.DieAt, f.DieSkips = call, skip
	_, _ = engineOf(f).Replace(t.Context(), replaceOptions(), nil)
	assert.Assert(t, f.Dead, "it never came to %s", call)
	f.DieAt, f.Dead = "", false
	f.Randomness += 50
}

// killedAt is replaceUntil, and the workers have ended.
func killedAt(t *testing.T, f *enginetest.Docker, call string, skip int) {
	t.Helper()
	replaceUntil(t, f, call, skip)
	f.ClientDies()
}

// assertReplaced checks that the new container is there, with what was captured.
func assertReplaced(t *testing.T, docker *enginetest.Docker, old string) {
	t.Helper()
	web := docker.FindContainer("web")
	assert.Assert(t, web != nil && web.ID != old, docker.World())
	assert.Equal(t, web.Files+" "+docker.Data(), "one one")
	assert.Assert(t, docker.FindContainer(old) == nil, docker.World())
}

func TestReplaceIsDoneOrUndone(t *testing.T) {
	t.Parallel()
	gone := func(t *testing.T, docker *enginetest.Docker) {
		t.Helper()
		assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
	}
	for name, change := range map[string]func(*testing.T, *enginetest.Docker){
		"running": func(*testing.T, *enginetest.Docker) {},
		"paused":  func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("web").State = "paused" },
		"stopped": func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("web").State = "exited" },
		"gone":    gone,
	} {
		t.Run(name, func(t *testing.T) {
			var old enginetest.FakeContainer
			scene := func(t *testing.T) *enginetest.Docker {
				t.Helper()
				docker := withTwo(t)
				change(t, docker)
				old = enginetest.FakeContainer{}
				if web := docker.FindContainer("web"); web != nil {
					old = *web
				}
				return docker
			}
			operate := func(ctx context.Context, e *Engine) error {
				_, err := e.Replace(ctx, replaceOptions(), nil)
				return err
			}
			kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter, enginetest.FaultDie}
			withFaults(t, kinds, scene, operate, func(t *testing.T, o enginetest.Outcome) { checkReplaced(t, o, old) })
		})
	}
}

// checkReplaced checks that after a fault either everything is as it was captured,
// or as it was, if need be after one recovery.
func checkReplaced(t *testing.T, o enginetest.Outcome, old enginetest.FakeContainer) {
	t.Helper()
	docker := o.Docker
	docker.ClientDies()
	docker.Wait(time.Minute / 2) // what was made and never ran counts as dead
	_, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err, "%v", o.Err)
	for line := range strings.Lines(docker.World()) {
		assert.Assert(t, !strings.Contains(line, "-replaced-") && !strings.HasPrefix(line, "container cua-"), "%s", docker.World())
	}
	web := docker.FindContainer("web")
	if web != nil && web.Files == "one" {
		assertReplaced(t, docker, old.ID)
		assert.Equal(t, web.State, "running")
		return
	}
	assert.Assert(t, o.Err != nil || o.Kind == enginetest.FaultDie)
	assert.Equal(t, docker.Data(), "two")
	if old.ID == "" {
		assert.Assert(t, web == nil, docker.World())
		return
	}
	assert.Assert(t, web != nil, docker.World())
	assert.Equal(t, web.ID+web.State, old.ID+old.State)
	assert.Equal(t, web.Host.RestartPolicy.Name, old.Host.RestartPolicy.Name)
}

// TestReplaceChangesNothingWithoutAWayBack has the store lose what the volume would be put back from.
func TestReplaceChangesNothingWithoutAWayBack(t *testing.T) {
	docker := withTwo(t)
	old := docker.FindContainer("web").ID
	docker.Service.Rotten = &protocol.Error{Class: protocol.Damaged, Message: `the copy of "file" is damaged`, Path: "file"}
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.ErrorIs(t, err, protocol.Damaged)
	assert.ErrorContains(t, err, `the copy of "file" is damaged`)
	assert.ErrorContains(t, err, "everything was put back")
	web := docker.FindContainer("web")
	assert.Equal(t, web.ID+" "+web.State+" "+docker.Data(), old+" running two")
	for _, call := range docker.Calls {
		assert.Assert(t, !strings.HasPrefix(call, "apply"), "%v", docker.Calls)
	}

	o := replaceOptions()
	o.NoSafety = true // asks for no way back
	docker.Service.Rotten = errors.New("nobody looks")
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	assertReplaced(t, docker, old)
}

// TestReplaceAPausedOneShot has its safety snapshot taken before it stops, and nobody waits
// for it to be thawed.
func TestReplaceAPausedOneShot(t *testing.T) {
	docker := withTwo(t)
	web := docker.FindContainer("web")
	web.Host.AutoRemove, web.Host.RestartPolicy = true, container.RestartPolicy{}
	web.State = "paused"
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.NilError(t, err)
	assertReplaced(t, docker, web.ID)
}

// The message tells the state in which the container is now, not the one from before.
func TestRollbackTellsTheStateOfTheContainer(t *testing.T) {
	docker := withTwo(t)
	docker.OnStart = func(c *enginetest.FakeContainer) {
		if c.Name == "web" {
			c.End(docker.Clock)
			c.ExitCode = 3
		}
	}
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.ErrorContains(t, err, ") is stopped (started again, it ended with exit code 3), with the data that it had")

	docker = withTwo(t)
	docker.OnStart = func(c *enginetest.FakeContainer) {
		if c.Name == "web" && c.Files == "one" {
			c.End(docker.Clock)
			c.ExitCode = 3
		}
	}
	_, err = engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.ErrorContains(t, err, ") is running, with the data that it had")
}

func TestReplaceShowsTheLogOfWhatFailed(t *testing.T) {
	docker := withTwo(t)
	docker.OnStart = func(c *enginetest.FakeContainer) {
		if c.Name == "web" && c.Files == "one" {
			c.End(docker.Clock)
			c.ExitCode = 3
			for n := range 30 {
				c.Log += fmt.Sprintf("line %d\n", n)
			}
			c.Log += "no such table\r\n"
		}
	}
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.ErrorContains(t, err, "container web did not stay up: its command ended with status 3\nthe last lines of its log:\n  line 11\n")
	assert.ErrorContains(t, err, "  line 29\n  no such table\neverything was put back: container web")
	assert.Equal(t, strings.Count(err.Error(), "\n  "), 20)
	assert.Equal(t, docker.Data(), "two")

	o := replaceOptions()
	o.Wait = false // nobody judges
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("web").State, "exited")
}
