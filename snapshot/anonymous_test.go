package snapshot

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withAnonymous is an engine with a container web that has a named and an anonymous
// volume, both at one, and a snapshot of it.
func withAnonymous(t *testing.T) *fakeDocker {
	t.Helper()
	docker := newFakeDocker()
	docker.withVolumes()
	web := docker.create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Binds: []string{"data:/data"}})
	for _, m := range web.mounts {
		docker.findVolume(m.Name).content = "one"
	}
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	docker.randomness = 100
	docker.forgetCalls()
	return docker
}

// anonymousOf is the anonymous volume of a container.
func (f *fakeDocker) anonymousOf(t *testing.T, name string) *fakeVolume {
	t.Helper()
	for _, m := range f.findContainer(name).mounts {
		if m.Destination == "/anonymous" {
			return f.findVolume(m.Name)
		}
	}
	t.Fatalf("%s has no anonymous volume", name)
	return nil
}

// The anonymous volume of a copy has what was captured, and goes with the copy.
func TestTheAnonymousVolumeOfACopyGoesWithIt(t *testing.T) {
	for _, start := range []runconfig.Start{runconfig.StartAlways, runconfig.StartNever} {
		docker := withAnonymous(t)
		_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy", Start: start}, nil)
		assert.NilError(t, err)
		made := docker.anonymousOf(t, "copy")
		assert.Equal(t, made.content, "one")
		docker.wait(time.Hour)
		_, err = engineOf(docker).Recover(t.Context(), "", nil)
		assert.NilError(t, err)
		assert.Assert(t, docker.findContainer("copy") != nil, "a copy that is complete was taken for one that is not")
		assert.NilError(t, docker.ContainerRemove(t.Context(), "copy", container.RemoveOptions{Force: true, RemoveVolumes: true}))
		assert.Assert(t, docker.findVolume(made.name) == nil, docker.world())
		assert.Assert(t, docker.findVolume("data-000065") != nil, docker.world())
	}
}

// A client that is killed leaves a whole copy, or something that the next recovery
// removes.
func TestACopyThatWasKilledIsWholeOrGone(t *testing.T) {
	for _, start := range []runconfig.Start{runconfig.StartAlways, runconfig.StartNever} {
		operate := func(ctx context.Context, e *Engine) error {
			_, err := e.Restore(ctx, runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy", Start: start}, nil)
			return err
		}
		withFaults(t, []faultKind{faultDie}, withAnonymous, operate, func(t *testing.T, o outcome) {
			docker := o.docker
			docker.clientDies()
			docker.wait(2 * copies.UnfinishedAge)
			_, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			if docker.findContainer("copy") == nil {
				assert.Equal(t, docker.world(), o.before)
				return
			}
			assert.Equal(t, docker.anonymousOf(t, "copy").content, "one")
			assert.Equal(t, docker.findVolume("data-000065").content, "one")
			assert.Assert(t, !strings.Contains(docker.world(), "container cua-"), docker.world())
		})
	}
}

// While a worker fills its volumes, however long that takes, a copy is not cleared away.
func TestACopyThatIsBeingFilledStays(t *testing.T) {
	docker := newFakeDocker()
	docker.withVolumes()
	docker.create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{})
	docker.anonymousOf(t, "web").content = "one"
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	others := 0
	docker.before("apply ", 0, func() {
		docker.wait(2 * copies.UnfinishedAge)
		engineOf(docker).copies.ClearCopies(t.Context(), func(event plan.Event) { t.Error(event.Text) })
		others++
	})
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy", Start: runconfig.StartNever}, nil)
	assert.NilError(t, err)
	assert.Equal(t, others, 1)
	assert.Equal(t, docker.anonymousOf(t, "copy").content, "one")
}

// In place, an anonymous volume that is gone is made anew, and is anonymous again. One
// that is there stays.
func TestAnAnonymousVolumeThatIsGoneIsMadeAgainInPlace(t *testing.T) {
	var old string
	scene := func(t *testing.T) *fakeDocker {
		t.Helper()
		docker := withAnonymous(t)
		old = docker.findContainer("web").id
		assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{RemoveVolumes: true}))
		docker.findVolume("data").content = "two"
		docker.forgetCalls()
		return docker
	}
	operate := func(ctx context.Context, e *Engine) error {
		_, err := e.Replace(ctx, replaceOptions(), nil)
		return err
	}
	kinds := []faultKind{faultRefuse, faultLoseAnswer, faultCancelBefore, faultCancelAfter, faultDie}
	withFaults(t, kinds, scene, operate, func(t *testing.T, o outcome) {
		docker := o.docker
		docker.clientDies()
		docker.wait(time.Minute / 2)
		_, err := engineOf(docker).Recover(t.Context(), "", nil)
		assert.NilError(t, err, "%v", o.err)
		web := docker.findContainer("web")
		if web == nil {
			assert.Equal(t, docker.data(), "two")
			assert.Equal(t, strings.Count(docker.world(), "volume "), strings.Count(o.before, "volume "), docker.world())
			return
		}
		made := docker.anonymousOf(t, "web")
		assert.Equal(t, made.content+docker.data(), "oneone")
		assert.Equal(t, made.madeWith, web.id)
		assert.Assert(t, web.id != old)
	})
	docker := withAnonymous(t)
	kept := docker.anonymousOf(t, "web")
	kept.content = "two"
	assert.NilError(t, operate(t.Context(), engineOf(docker)))
	assert.Equal(t, docker.anonymousOf(t, "web"), kept)
	assert.Equal(t, kept.content, "one")
}
