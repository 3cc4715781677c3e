package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// outcome is how an operation ended in which one call went wrong.
type outcome struct {
	docker        *fakeDocker
	kind          faultKind
	before, after string // the world
	err           error
}

// hit tells whether the call that went wrong is one of these.
func (o outcome) hit(calls ...string) bool {
	for _, call := range calls {
		if strings.HasPrefix(o.docker.fired, call) {
			return true
		}
	}
	return false
}

// withEachFault runs an operation as often as it makes calls, times the ways in
// which a call can go wrong, each time in a new world, and has the outcome checked.
func withEachFault(t *testing.T, scene func(*testing.T) *fakeDocker, operate func(context.Context, *Engine) error, check func(*testing.T, outcome)) {
	t.Helper()
	withFaults(t, []faultKind{faultRefuse, faultLoseAnswer, faultCancelBefore, faultCancelAfter}, scene, operate, check)
}

// withFaults is withEachFault with a choice of them.
func withFaults(t *testing.T, kinds []faultKind, scene func(*testing.T) *fakeDocker, operate func(context.Context, *Engine) error, check func(*testing.T, outcome)) {
	t.Helper()
	for _, kind := range kinds {
		for n := 1; ; n++ {
			docker := scene(t)
			docker.forgetCalls()
			ctx, cancel := context.WithCancel(t.Context())
			docker.fault, docker.cancel = fault{at: n, kind: kind}, cancel
			o := outcome{docker: docker, kind: kind, before: docker.world()}
			o.err = operate(ctx, engineOf(docker))
			o.after = docker.world()
			cancel()
			fired := docker.disarm()
			if fired == "" {
				assert.NilError(t, o.err)
				break // n is past the last call
			}
			t.Run(fmt.Sprintf("%s %d %s", kind, n, fired), func(t *testing.T) { check(t, o) })
		}
	}
}

// olderSnapshot is the one that every scene begins with; db shares the engine.
func sceneWith(prepare func(t *testing.T, docker *fakeDocker)) func(*testing.T) *fakeDocker {
	return func(t *testing.T) *fakeDocker {
		t.Helper()
		docker := newFakeDocker()
		prepare(t, docker)
		return docker
	}
}

func snapshotOf(t *testing.T, docker *fakeDocker, o capture.Options) catalog.Snapshot {
	t.Helper()
	created, err := engineOf(docker).Create(t.Context(), o, nil)
	assert.NilError(t, err)
	return created.Snapshot
}

func TestCreateIsWholeOrLeavesNothing(t *testing.T) {
	scenes := map[string]struct {
		options capture.Options
		prepare func(*testing.T, *fakeDocker)
	}{
		"first": {capture.Options{Container: "web"}, func(t *testing.T, docker *fakeDocker) {
			docker.run(t, "web")
		}},
		"named, after another": {capture.Options{Container: "web", Name: "two"}, func(t *testing.T, docker *fakeDocker) {
			docker.run(t, "web")
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
		}},
		"paused by its user": {capture.Options{Container: "web"}, func(t *testing.T, docker *fakeDocker) {
			docker.run(t, "web").state = "paused"
		}},
		"never started": {capture.Options{Container: "web"}, func(t *testing.T, docker *fakeDocker) {
			docker.create(t, "web", &container.Config{Volumes: map[string]struct{}{"/data": {}}}, &container.HostConfig{})
		}},
		"reusing a name": {capture.Options{Container: "web", Name: "one", Reuse: true}, func(t *testing.T, docker *fakeDocker) {
			docker.run(t, "web")
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
		}},
		"too many layers": {capture.Options{Container: "web", Name: "flat"}, func(t *testing.T, docker *fakeDocker) {
			manyLayers(docker)
			docker.run(t, "web")
		}},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			operate := func(ctx context.Context, e *Engine) error {
				e.random = &counter{last: 100}
				_, err := e.Create(ctx, scene.options, nil)
				return err
			}
			withEachFault(t, sceneWith(scene.prepare), operate, func(t *testing.T, o outcome) {
				assert.Equal(t, containersOf(o.after), containersOf(o.before)+o.leftScratch())
				if o.err == nil {
					assertWhole(t, o.docker, scene.options)
					return
				}
				assert.Equal(t, tagsOf(o.after), tagsOf(o.before))
				assertOnlySweepableIsLeft(t, o)
			})
		})
	}
}

// manyLayers gives busybox as many layers as a snapshot's image may have.
func manyLayers(docker *fakeDocker) {
	img := docker.findImage("busybox")
	for len(img.layers) < capture.MaxLayers {
		img.layers = append(img.layers, docker.newID())
	}
}

// containersOf are the lines of a world about containers and volumes.
func containersOf(world string) string {
	return lines(world, func(line string) bool { return !strings.HasPrefix(line, "image ") })
}

// tagsOf are the lines of a world about images with tags.
func tagsOf(world string) string {
	return lines(world, func(line string) bool {
		return strings.HasPrefix(line, "image ") && !strings.Contains(line, "untagged")
	})
}

func lines(world string, keep func(string) bool) string {
	var kept strings.Builder
	for line := range strings.Lines(world) {
		if keep(line) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// leftScratch is what may be left when removing the scratch container itself was
// refused: the error tells, and the sweep comes by.
func (o outcome) leftScratch() string {
	if o.kind == faultRefuse && o.hit("ContainerRemove") {
		return "container " + o.docker.containers[len(o.docker.containers)-1].name + " created\n"
	}
	return ""
}

// assertOnlySweepableIsLeft allows untagged images where nothing can be known of
// them: the answer with the ID was lost, or removing it was refused. An hour
// later the next removal sweeps them.
func assertOnlySweepableIsLeft(t *testing.T, o outcome) {
	t.Helper()
	excusable := o.kind == faultLoseAnswer && o.hit("ImageImport") ||
		o.kind == faultCancelAfter && o.hit("ImageImport") ||
		o.kind == faultRefuse && o.hit("ContainerRemove", "ImageRemove")
	if !excusable {
		assert.Equal(t, o.after, o.before)
		return
	}
	engine := engineOf(o.docker)
	engine.removal.SweepOrphans(t.Context(), o.docker.infoNow(t), func(event plan.Event) { t.Error(event.Text) })
	assert.Equal(t, o.docker.world(), o.after, "swept too early")
	o.docker.clock = o.docker.clock.Add(removal.OrphanAge + time.Minute)
	engine.removal.SweepOrphans(t.Context(), o.docker.infoNow(t), func(event plan.Event) { t.Error(event.Text) })
	engine.removal.SweepOrphans(t.Context(), o.docker.infoNow(t), func(event plan.Event) { t.Error(event.Text) }) // what stood on what was swept
	assert.Equal(t, o.docker.world(), o.before)
}

// assertWhole checks that the newest snapshot is there with all its tags.
func assertWhole(t *testing.T, docker *fakeDocker, o capture.Options) {
	t.Helper()
	s, err := engineOf(docker).Resolve(t.Context(), o.Container+":latest")
	assert.NilError(t, err)
	assert.Equal(t, s.Name, o.Name)
	assert.Equal(t, s.Created.Year(), 2026)
	wanted := []string{s.Ref(), catalog.Repository(o.Container) + ":latest"}
	if o.Name != "" {
		wanted = append(wanted, catalog.Repository(o.Container)+":"+o.Name)
	}
	slices.Sort(wanted)
	assert.DeepEqual(t, s.Refs, wanted)
}

func TestRestoreLeavesWhatWasBefore(t *testing.T) {
	scenes := map[string]struct {
		options runconfig.RestoreOptions
		prepare func(*testing.T, *fakeDocker)
	}{
		"running, with volumes": {runconfig.RestoreOptions{Snapshot: "web:latest"}, func(t *testing.T, docker *fakeDocker) {
			docker.withVolumes()
			c := docker.create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Binds: []string{"data:/data"}})
			assert.NilError(t, docker.ContainerStart(t.Context(), c.id, container.StartOptions{}))
		}},
		"several networks, an engine that takes one at a time": {runconfig.RestoreOptions{Snapshot: "web:latest", Name: "copy"}, func(t *testing.T, docker *fakeDocker) {
			docker.apiVersion = "1.43"
			c := docker.run(t, "web")
			for _, name := range []string{"back", "front"} {
				_, err := docker.NetworkCreate(t.Context(), name, network.CreateOptions{})
				assert.NilError(t, err)
				assert.NilError(t, docker.NetworkConnect(t.Context(), name, c.id, nil))
			}
		}},
		"a container that removes itself, and a port that is taken": {runconfig.RestoreOptions{Snapshot: "web:latest", Start: runconfig.StartAlways}, func(t *testing.T, docker *fakeDocker) {
			docker.withVolumes()
			docker.hostPorts["8080"] = true
			docker.create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{
				AutoRemove: true, PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}},
			})
		}},
		"an anonymous volume, not to be started": {runconfig.RestoreOptions{Snapshot: "web:latest", Start: runconfig.StartNever}, func(t *testing.T, docker *fakeDocker) {
			docker.withVolumes()
			docker.create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{})
		}},
		"made elsewhere": {runconfig.RestoreOptions{Snapshot: "web:latest"}, func(t *testing.T, docker *fakeDocker) {
			docker.info.ID = "engine-2"
			docker.run(t, "web")
		}},
		"a dry run": {runconfig.RestoreOptions{Snapshot: "web:latest", DryRun: true}, func(t *testing.T, docker *fakeDocker) {
			docker.run(t, "web")
		}},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			prepare := func(t *testing.T, docker *fakeDocker) {
				t.Helper()
				scene.prepare(t, docker)
				snapshotOf(t, docker, capture.Options{Container: "web"})
				docker.info.ID = "engine-1"
			}
			operate := func(ctx context.Context, e *Engine) error {
				_, err := e.Restore(ctx, scene.options, nil)
				return err
			}
			withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o outcome) {
				assert.Assert(t, !o.docker.startedTwice)
				if o.err != nil {
					assert.Equal(t, o.after, o.before)
				}
			})
		})
	}
}

func TestRemoveLeavesTheSnapshotWholeOrGone(t *testing.T) {
	var removed catalog.Snapshot
	prepare := func(t *testing.T, docker *fakeDocker) {
		t.Helper()
		docker.run(t, "web")
		docker.run(t, "db")
		snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
		engine := engineOf(docker)
		engine.random = &counter{last: 7}
		created, err := engine.Create(t.Context(), capture.Options{Container: "web", Name: "two"}, nil)
		assert.NilError(t, err)
		removed = created.Snapshot
	}
	for _, word := range []string{"web:latest", "two"} {
		t.Run(word, func(t *testing.T) {
			operate := func(ctx context.Context, e *Engine) error {
				return e.Remove(ctx, []string{word}, removal.Options{}, nil)[0].Err
			}
			withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o outcome) {
				whole := o.after == o.before
				gone := o.docker.findImage(removed.ImageID) == nil
				latest, err := engineOf(o.docker).catalog.Resolve(t.Context(), "web:latest")
				assert.NilError(t, err)
				assert.Assert(t, whole || gone && latest.Name == "one", "%s", o.after)
				assert.Assert(t, o.err != nil || gone)
				assert.Equal(t, containersOf(o.after), containersOf(o.before))
			})
		})
	}
}

func TestRemoveOfManyLeavesEachWholeOrGone(t *testing.T) {
	prepare := func(t *testing.T, docker *fakeDocker) {
		t.Helper()
		docker.run(t, "web")
		for i, name := range []string{"one", "two", "three"} {
			docker.randomness = byte(10 * i)
			snapshotOf(t, docker, capture.Options{Container: "web", Name: name})
		}
	}
	operate := func(ctx context.Context, e *Engine) error {
		var failed error
		for _, r := range e.Remove(ctx, []string{"three", "two"}, removal.Options{}, nil) {
			failed = errors.Join(failed, r.Err)
		}
		return failed
	}
	withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o outcome) {
		left, err := engineOf(o.docker).List(t.Context(), catalog.ListOptions{}, nil)
		assert.NilError(t, err)
		assert.Assert(t, o.err != nil || len(left) == 1, "%s", o.after)
		latest, err := engineOf(o.docker).catalog.Resolve(t.Context(), "web:latest")
		assert.NilError(t, err, "%s", o.after)
		assert.Equal(t, latest.Name, left[0].Name, "%s", o.after)
		for _, s := range left {
			assert.Assert(t, s.Name != "", "%s", o.after) // with all its tags
		}
		images := len(o.docker.images)
		assert.Equal(t, images, 1+len(left), "%s", o.after)
	})
}

func TestSweepLeavesAlone(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	record := docker.findImage(made[0].ImageID)
	// Built FROM a snapshot, untagged: it inherited all labels.
	docker.addImage("", &container.Config{Labels: record.config.Labels}).comment = "buildkit.dockerfile.v0"
	// The orphan of a killed client, which a container was made from by hand.
	orphan := docker.addImage("", &container.Config{Cmd: []string{"sh"}, Labels: record.config.Labels})
	orphan.comment = catalog.CommitComment(made[0].ID)
	docker.create(t, "user", &container.Config{Image: orphan.id}, &container.HostConfig{})
	// A container that only has a similar name, and one of ours that is new.
	docker.create(t, catalog.ScratchPrefix+"by-hand", &container.Config{}, &container.HostConfig{})
	docker.create(t, "my-"+catalog.ScratchPrefix, &container.Config{Labels: map[string]string{labels.KeyVersion: "1"}}, &container.HostConfig{})
	docker.clock = docker.clock.Add(2 * removal.OrphanAge)
	docker.create(t, catalog.ScratchPrefix+"new", &container.Config{Labels: map[string]string{labels.KeyVersion: "1"}}, &container.HostConfig{})
	before := docker.world()

	engineOf(docker).removal.SweepOrphans(t.Context(), docker.infoNow(t), func(event plan.Event) { t.Error(event.Text) })

	assert.Equal(t, docker.world(), before)
	now := docker.infoNow(t)
	docker.fault = fault{at: len(docker.calls) + 1, kind: faultRefuse}
	var got events
	engineOf(docker).removal.SweepOrphans(t.Context(), now, got.progress)
	assert.Equal(t, len(got.warnings()), 1)
}
