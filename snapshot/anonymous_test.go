package snapshot

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

func TestWhatBecomesAnonymous(t *testing.T) {
	id := strings.Repeat("0f", 32)
	m := func(change func(*labels.Mount)) labels.Mount {
		m := labels.Mount{Type: "volume", Name: id, Destination: "/data", Driver: "local", RW: true, Anonymous: true}
		change(&m)
		return m
	}
	tests := map[string]struct {
		m    labels.Mount
		host container.HostConfig
		more []labels.Mount
		want bool
	}{
		"anonymous":             {m(func(*labels.Mount) {}), container.HostConfig{}, nil, true},
		"a volume that is gone": {m(func(m *labels.Mount) { m.Driver = "" }), container.HostConfig{VolumeDriver: "local"}, nil, true},
		"named":                 {m(func(m *labels.Mount) { m.Anonymous = false }), container.HostConfig{}, nil, false},
		"read-only":             {m(func(m *labels.Mount) { m.RW = false }), container.HostConfig{}, nil, false},
		"a part of it":          {m(func(m *labels.Mount) { m.Subpath = "part" }), container.HostConfig{}, nil, false},
		"with options":          {m(func(m *labels.Mount) { m.Options = map[string]string{"size": "1g"} }), container.HostConfig{}, nil, false},
		"of another driver":     {m(func(m *labels.Mount) { m.Driver = "nfs" }), container.HostConfig{}, nil, false},
		"the container's volumes are of another driver": {m(func(*labels.Mount) {}), container.HostConfig{VolumeDriver: "nfs"}, nil, false},
		"mounted twice":          {m(func(*labels.Mount) {}), container.HostConfig{}, []labels.Mount{m(func(m *labels.Mount) { m.Destination = "/again" })}, false},
		"of another container's": {m(func(*labels.Mount) {}), container.HostConfig{VolumesFrom: []string{"peer"}}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := spec{host: test.host}
			assert.Equal(t, sp.becomesAnonymous(test.m, append(test.more, test.m)), test.want)
		})
	}
}

func TestMountAnonymousTakesTheNameOut(t *testing.T) {
	id := strings.Repeat("0f", 32)
	declared := container.Config{Volumes: map[string]struct{}{"/data/": {}}}
	tests := map[string]struct {
		before spec
		want   container.HostConfig
	}{
		"declared by the image": {spec{config: declared}, container.HostConfig{}},
		"declared, and mounted by its name": {
			spec{config: declared, host: container.HostConfig{Binds: []string{"/data:/data/sub", id + ":/data:nocopy"}}}, container.HostConfig{Binds: []string{"/data:/data/sub"}},
		},
		"mounted by its name": {
			spec{host: container.HostConfig{Binds: []string{id + ":/data"}}},
			container.HostConfig{Binds: []string{}, Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/data"}}},
		},
		"a destination alone": {spec{host: container.HostConfig{Binds: []string{"/data"}}}, container.HostConfig{Binds: []string{"/data"}}},
		"a mount with options": {
			spec{host: container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: id, Target: "/data", VolumeOptions: &mount.VolumeOptions{
				NoCopy: true, Labels: map[string]string{"own": "1", "com.docker.compose.project": "shop", labelAnonymous: ""}, DriverConfig: &mount.Driver{Name: "local"},
			}}}}},
			container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/data", VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: map[string]string{"own": "1"}}}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.before.mountAnonymous(labels.Mount{Name: id, Destination: "/data"})
			assert.DeepEqual(t, test.before.host, test.want)
		})
	}
}

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
	snapshotOf(t, docker, CreateOptions{Container: "web", Name: "one"})
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
	for _, start := range []Start{StartAlways, StartNever} {
		docker := withAnonymous(t)
		_, err := docker.engine().Restore(t.Context(), RestoreOptions{Snapshot: "web:one", Name: "copy", Start: start}, nil)
		assert.NilError(t, err)
		made := docker.anonymousOf(t, "copy")
		assert.Equal(t, made.content, "one")
		docker.wait(time.Hour)
		_, err = docker.engine().Recover(t.Context(), "", nil)
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
	for _, start := range []Start{StartAlways, StartNever} {
		operate := func(ctx context.Context, e *Engine) error {
			_, err := e.Restore(ctx, RestoreOptions{Snapshot: "web:one", Name: "copy", Start: start}, nil)
			return err
		}
		withFaults(t, []faultKind{faultDie}, withAnonymous, operate, func(t *testing.T, o outcome) {
			docker := o.docker
			docker.clientDies()
			docker.wait(2 * unfinishedAge)
			_, err := docker.engine().Recover(t.Context(), "", nil)
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
	snapshotOf(t, docker, CreateOptions{Container: "web", Name: "one"})
	others := 0
	docker.before("apply ", 0, func() {
		docker.wait(2 * unfinishedAge)
		docker.engine().clearCopies(t.Context(), func(event plan.Event) { t.Error(event.Text) })
		others++
	})
	_, err := docker.engine().Restore(t.Context(), RestoreOptions{Snapshot: "web:one", Name: "copy", Start: StartNever}, nil)
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
		_, err := docker.engine().Recover(t.Context(), "", nil)
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
	assert.NilError(t, operate(t.Context(), docker.engine()))
	assert.Equal(t, docker.anonymousOf(t, "web"), kept)
	assert.Equal(t, kept.content, "one")
}
