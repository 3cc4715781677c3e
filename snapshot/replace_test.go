package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/protocol"
)

// withTwo is an engine with a container web and its volume data, of which there is
// a snapshot web:one; now all are at two.
func withTwo(t *testing.T) *fakeDocker {
	t.Helper()
	docker := newFakeDocker()
	docker.withVolumes()
	web := docker.create(t, "web", &container.Config{}, &container.HostConfig{
		Binds: []string{"data:/data"}, RestartPolicy: container.RestartPolicy{Name: "always"},
	})
	assert.NilError(t, docker.ContainerStart(t.Context(), web.id, container.StartOptions{}))
	web.files = "one"
	docker.findVolume("data").content = "one"
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	web.files = "two"
	docker.findVolume("data").content = "two"
	docker.randomness = 100
	docker.forgetCalls()
	return docker
}

func replaceOptions() replace.Options {
	return replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}, Wait: true}
}

// clientDies is what a client leaves that is killed: its workers end as their input does.
func (f *fakeDocker) clientDies() {
	f.mu.Lock() // what an operation asked ahead may still be under way
	defer f.mu.Unlock()
	f.dead = false
	f.randomness += 50
	for _, c := range f.containers {
		if c.config.Image == workerImage && c.state == "running" {
			c.end(f.clock)
		}
	}
}

// wait lets time pass on the engine.
func (f *fakeDocker) wait(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = f.clock.Add(d)
}

// replaceUntil has a restore in place of web:one die before a call that begins so,
// but so many of them later. Its workers do not know yet that they are orphans.
func replaceUntil(t *testing.T, f *fakeDocker, call string, skip int) {
	t.Helper()
	f.dieAt, f.dieSkips = call, skip
	_, _ = engineOf(f).Replace(t.Context(), replaceOptions(), nil)
	assert.Assert(t, f.dead, "it never came to %s", call)
	f.dieAt, f.dead = "", false
	f.randomness += 50
}

// killedAt is replaceUntil, and the workers have ended.
func killedAt(t *testing.T, f *fakeDocker, call string, skip int) {
	t.Helper()
	replaceUntil(t, f, call, skip)
	f.clientDies()
}

// data is what the volume data holds.
func (f *fakeDocker) data() string { return f.findVolume("data").content }

// assertReplaced checks that the new container is there, with what was captured.
func assertReplaced(t *testing.T, docker *fakeDocker, old string) {
	t.Helper()
	web := docker.findContainer("web")
	assert.Assert(t, web != nil && web.id != old, docker.world())
	assert.Equal(t, web.files+" "+docker.data(), "one one")
	assert.Assert(t, docker.findContainer(old) == nil, docker.world())
}

func TestReplaceIsDoneOrUndone(t *testing.T) {
	gone := func(t *testing.T, docker *fakeDocker) {
		t.Helper()
		assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
	}
	for name, change := range map[string]func(*testing.T, *fakeDocker){
		"running": func(*testing.T, *fakeDocker) {},
		"paused":  func(_ *testing.T, docker *fakeDocker) { docker.findContainer("web").state = "paused" },
		"stopped": func(_ *testing.T, docker *fakeDocker) { docker.findContainer("web").state = "exited" },
		"gone":    gone,
	} {
		t.Run(name, func(t *testing.T) {
			var old fakeContainer
			scene := func(t *testing.T) *fakeDocker {
				t.Helper()
				docker := withTwo(t)
				change(t, docker)
				old = fakeContainer{}
				if web := docker.findContainer("web"); web != nil {
					old = *web
				}
				return docker
			}
			operate := func(ctx context.Context, e *Engine) error {
				_, err := e.Replace(ctx, replaceOptions(), nil)
				return err
			}
			kinds := []faultKind{faultRefuse, faultLoseAnswer, faultCancelBefore, faultCancelAfter, faultDie}
			withFaults(t, kinds, scene, operate, func(t *testing.T, o outcome) { checkReplaced(t, o, old) })
		})
	}
}

// checkReplaced checks that after a fault either everything is as it was captured,
// or as it was, if need be after one recovery.
func checkReplaced(t *testing.T, o outcome, old fakeContainer) {
	t.Helper()
	docker := o.docker
	docker.clientDies()
	docker.wait(time.Minute / 2) // what was made and never ran counts as dead
	_, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err, "%v", o.err)
	for line := range strings.Lines(docker.world()) {
		assert.Assert(t, !strings.Contains(line, "-replaced-") && !strings.HasPrefix(line, "container cua-"), "%s", docker.world())
	}
	web := docker.findContainer("web")
	if web != nil && web.files == "one" {
		assertReplaced(t, docker, old.id)
		assert.Equal(t, web.state, "running")
		return
	}
	assert.Assert(t, o.err != nil || o.kind == faultDie)
	assert.Equal(t, docker.data(), "two")
	if old.id == "" {
		assert.Assert(t, web == nil, docker.world())
		return
	}
	assert.Assert(t, web != nil, docker.world())
	assert.Equal(t, web.id+web.state, old.id+old.state)
	assert.Equal(t, web.host.RestartPolicy.Name, old.host.RestartPolicy.Name)
}

// TestReplaceChangesNothingWithoutAWayBack has the store lose what the volume would be put back from.
func TestReplaceChangesNothingWithoutAWayBack(t *testing.T) {
	docker := withTwo(t)
	old := docker.findContainer("web").id
	docker.service.rotten = &protocol.Error{Class: protocol.Damaged, Message: `the copy of "file" is damaged`, Path: "file"}
	_, err := engineOf(docker).Replace(t.Context(), replaceOptions(), nil)
	assert.ErrorIs(t, err, protocol.Damaged)
	assert.ErrorContains(t, err, `the copy of "file" is damaged`)
	assert.ErrorContains(t, err, "everything was put back")
	web := docker.findContainer("web")
	assert.Equal(t, web.id+" "+web.state+" "+docker.data(), old+" running two")
	for _, call := range docker.calls {
		assert.Assert(t, !strings.HasPrefix(call, "apply"), "%v", docker.calls)
	}

	o := replaceOptions()
	o.NoSafety = true // asks for no way back
	docker.service.rotten = errors.New("nobody looks")
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	assertReplaced(t, docker, old)
}

// TestReplaceAPausedOneShot has its safety snapshot taken before it stops, and nobody waits
// for it to be thawed.
func TestReplaceAPausedOneShot(t *testing.T) {
	docker := withTwo(t)
	web := docker.findContainer("web")
	web.host.AutoRemove, web.host.RestartPolicy = true, container.RestartPolicy{}
	web.state = "paused"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := engineOf(docker).Replace(ctx, replaceOptions(), nil)
	assert.NilError(t, err)
	assertReplaced(t, docker, web.id)
}
