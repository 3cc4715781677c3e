package snapshot

import (
	"context"
	"errors"
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
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withEachFault is [enginetest.EachFault] with the engine under test.
func withEachFault(t *testing.T, scene func(*testing.T) *enginetest.Docker, operate func(context.Context, *Engine) error, check func(*testing.T, enginetest.Outcome)) {
	t.Helper()
	enginetest.EachFault(t, scene, on(operate), check)
}

// withFaults is [enginetest.Faults] with the engine under test.
func withFaults(t *testing.T, kinds []enginetest.FaultKind, scene func(*testing.T) *enginetest.Docker, operate func(context.Context, *Engine) error, check func(*testing.T, enginetest.Outcome)) {
	t.Helper()
	enginetest.Faults(t, kinds, scene, on(operate), check)
}

func on(operate func(context.Context, *Engine) error) func(context.Context, *enginetest.Docker) error {
	return func(ctx context.Context, docker *enginetest.Docker) error { return operate(ctx, engineOf(docker)) }
}

// olderSnapshot is the one that every scene begins with; db shares the engine.
func sceneWith(prepare func(t *testing.T, docker *enginetest.Docker)) func(*testing.T) *enginetest.Docker {
	return func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := enginetest.New()
		prepare(t, docker)
		return docker
	}
}

func snapshotOf(t *testing.T, docker *enginetest.Docker, o capture.Options) catalog.Snapshot {
	t.Helper()
	created, err := engineOf(docker).Create(t.Context(), o, nil)
	assert.NilError(t, err)
	return created.Snapshot
}

func TestCreateIsWholeOrLeavesNothing(t *testing.T) {
	scenes := map[string]struct {
		options capture.Options
		prepare func(*testing.T, *enginetest.Docker)
	}{
		"first": {capture.Options{Container: "web"}, func(t *testing.T, docker *enginetest.Docker) {
			docker.Run(t, "web")
		}},
		"named, after another": {capture.Options{Container: "web", Name: "two"}, func(t *testing.T, docker *enginetest.Docker) {
			docker.Run(t, "web")
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
		}},
		"paused by its user": {capture.Options{Container: "web"}, func(t *testing.T, docker *enginetest.Docker) {
			docker.Run(t, "web").State = "paused"
		}},
		"never started": {capture.Options{Container: "web"}, func(t *testing.T, docker *enginetest.Docker) {
			docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/data": {}}}, &container.HostConfig{})
		}},
		"reusing a name": {capture.Options{Container: "web", Name: "one", Reuse: true}, func(t *testing.T, docker *enginetest.Docker) {
			docker.Run(t, "web")
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
		}},
		"too many layers": {capture.Options{Container: "web", Name: "flat"}, func(t *testing.T, docker *enginetest.Docker) {
			manyLayers(docker)
			docker.Run(t, "web")
		}},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			operate := func(ctx context.Context, e *Engine) error {
				_, err := e.Create(ctx, scene.options, nil)
				return err
			}
			prepare := func(t *testing.T, docker *enginetest.Docker) {
				scene.prepare(t, docker)
				docker.Randomness = 100
			}
			withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o enginetest.Outcome) {
				assert.Equal(t, containersOf(o.After), containersOf(o.Before)+leftScratch(o))
				if o.Err == nil {
					assertWhole(t, o.Docker, scene.options)
					return
				}
				assert.Equal(t, tagsOf(o.After), tagsOf(o.Before))
				assertOnlySweepableIsLeft(t, o)
			})
		})
	}
}

// manyLayers gives busybox as many layers as a snapshot's image may have.
// tooManyLayers are as many as a snapshot's image may have.
const tooManyLayers = 100

func manyLayers(docker *enginetest.Docker) {
	img := docker.FindImage("busybox")
	for len(img.Layers) < tooManyLayers {
		img.Layers = append(img.Layers, docker.NewID())
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
func leftScratch(o enginetest.Outcome) string {
	if o.Kind == enginetest.FaultRefuse && o.Hit("ContainerRemove") {
		return "container " + o.Docker.Containers[len(o.Docker.Containers)-1].Name + " created\n"
	}
	return ""
}

// orphanAge is the age at which what a killed client has left is swept.
const orphanAge = time.Hour

// assertOnlySweepableIsLeft allows untagged images where nothing can be known of
// them: the answer with the ID was lost, or removing it was refused. An hour
// later the next removal sweeps them.
func assertOnlySweepableIsLeft(t *testing.T, o enginetest.Outcome) {
	t.Helper()
	excusable := o.Kind == enginetest.FaultLoseAnswer && o.Hit("ImageImport") ||
		o.Kind == enginetest.FaultCancelAfter && o.Hit("ImageImport") ||
		o.Kind == enginetest.FaultRefuse && o.Hit("ContainerRemove", "ImageRemove")
	if !excusable {
		assert.Equal(t, o.After, o.Before)
		return
	}
	engine := engineOf(o.Docker)
	engine.removal.SweepOrphans(t.Context(), o.Docker.InfoNow(t), func(event plan.Event) { t.Error(event.Text) })
	assert.Equal(t, o.Docker.World(), o.After, "swept too early")
	o.Docker.Clock = o.Docker.Clock.Add(orphanAge + time.Minute)
	engine.removal.SweepOrphans(t.Context(), o.Docker.InfoNow(t), func(event plan.Event) { t.Error(event.Text) })
	engine.removal.SweepOrphans(t.Context(), o.Docker.InfoNow(t), func(event plan.Event) { t.Error(event.Text) }) // what stood on what was swept
	assert.Equal(t, o.Docker.World(), o.Before)
}

// assertWhole checks that the newest snapshot is there with all its tags.
func assertWhole(t *testing.T, docker *enginetest.Docker, o capture.Options) {
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
	t.Parallel()
	scenes := map[string]struct {
		options runconfig.RestoreOptions
		prepare func(*testing.T, *enginetest.Docker)
	}{
		"running, with volumes": {runconfig.RestoreOptions{Snapshot: "web:latest"}, func(t *testing.T, docker *enginetest.Docker) {
			c := docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Binds: []string{"data:/data"}})
			assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
		}},
		"waited for": {runconfig.RestoreOptions{Snapshot: "web:latest", Waiting: runconfig.Waiting{Wait: true}}, func(t *testing.T, docker *enginetest.Docker) {
			c := docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Binds: []string{"data:/data"}})
			assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
		}},
		"several networks, an engine that takes one at a time": {runconfig.RestoreOptions{Snapshot: "web:latest", Name: "copy"}, func(t *testing.T, docker *enginetest.Docker) {
			docker.APIVersion = "1.43"
			c := docker.Run(t, "web")
			for _, name := range []string{"back", "front"} {
				_, err := docker.NetworkCreate(t.Context(), name, network.CreateOptions{})
				assert.NilError(t, err)
				assert.NilError(t, docker.NetworkConnect(t.Context(), name, c.ID, nil))
			}
		}},
		"a container that removes itself, and a port that is taken": {runconfig.RestoreOptions{Snapshot: "web:latest", Start: runconfig.StartAlways}, func(t *testing.T, docker *enginetest.Docker) {
			docker.HostPorts["8080"] = true
			docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{
				AutoRemove: true, PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}},
			})
		}},
		"an anonymous volume, not to be started": {runconfig.RestoreOptions{Snapshot: "web:latest", Start: runconfig.StartNever}, func(t *testing.T, docker *enginetest.Docker) {
			docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{})
		}},
		"made elsewhere": {runconfig.RestoreOptions{Snapshot: "web:latest"}, func(t *testing.T, docker *enginetest.Docker) {
			docker.About.ID = "engine-2"
			docker.Run(t, "web")
		}},
		"a dry run": {runconfig.RestoreOptions{Snapshot: "web:latest", DryRun: true}, func(t *testing.T, docker *enginetest.Docker) {
			docker.Run(t, "web")
		}},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			prepare := func(t *testing.T, docker *enginetest.Docker) {
				t.Helper()
				scene.prepare(t, docker)
				snapshotOf(t, docker, capture.Options{Container: "web"})
				docker.About.ID = "engine-1"
			}
			operate := func(ctx context.Context, e *Engine) error {
				_, err := e.Restore(ctx, scene.options, nil)
				return err
			}
			withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o enginetest.Outcome) {
				assert.Assert(t, !o.Docker.StartedTwice)
				if o.Err != nil {
					assert.Equal(t, o.After, o.Before)
				}
			})
		})
	}
}

func TestRemoveLeavesTheSnapshotWholeOrGone(t *testing.T) {
	var removed catalog.Snapshot
	prepare := func(t *testing.T, docker *enginetest.Docker) {
		t.Helper()
		docker.Run(t, "web")
		docker.Run(t, "db")
		snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
		engine := engineCounting(docker, 7)
		created, err := engine.Create(t.Context(), capture.Options{Container: "web", Name: "two"}, nil)
		assert.NilError(t, err)
		removed = created.Snapshot
	}
	for _, word := range []string{"web:latest", "two"} {
		t.Run(word, func(t *testing.T) {
			operate := func(ctx context.Context, e *Engine) error {
				return e.Remove(ctx, []string{word}, removal.Options{}, nil)[0].Err
			}
			withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o enginetest.Outcome) {
				whole := o.After == o.Before
				gone := o.Docker.FindImage(removed.ImageID) == nil
				latest, err := engineOf(o.Docker).catalog.Resolve(t.Context(), "web:latest")
				assert.NilError(t, err)
				assert.Assert(t, whole || gone && latest.Name == "one", "%s", o.After)
				assert.Assert(t, o.Err != nil || gone)
				assert.Equal(t, containersOf(o.After), containersOf(o.Before))
			})
		})
	}
}

func TestRemoveOfManyLeavesEachWholeOrGone(t *testing.T) {
	prepare := func(t *testing.T, docker *enginetest.Docker) {
		t.Helper()
		docker.Run(t, "web")
		for i, name := range []string{"one", "two", "three"} {
			docker.Randomness = byte(10 * i)
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
	withEachFault(t, sceneWith(prepare), operate, func(t *testing.T, o enginetest.Outcome) {
		left, err := engineOf(o.Docker).List(t.Context(), catalog.ListOptions{}, nil)
		assert.NilError(t, err)
		assert.Assert(t, o.Err != nil || len(left) == 1, "%s", o.After)
		latest, err := engineOf(o.Docker).catalog.Resolve(t.Context(), "web:latest")
		assert.NilError(t, err, "%s", o.After)
		assert.Equal(t, latest.Name, left[0].Name, "%s", o.After)
		for _, s := range left {
			assert.Assert(t, s.Name != "", "%s", o.After) // with all its tags
		}
		images := len(o.Docker.Images)
		assert.Equal(t, images, 2+len(left), "%s", o.After)
	})
}

func TestSweepLeavesAlone(t *testing.T) {
	docker, made := withSnapshots(t, "web:one")
	record := docker.FindImage(made[0].ImageID)
	// Built FROM a snapshot, untagged: it inherited all labels.
	docker.AddImage("", &container.Config{Labels: record.Config.Labels}).Comment = "buildkit.dockerfile.v0"
	// The orphan of a killed client, which a container was made from by hand.
	orphan := docker.AddImage("", &container.Config{Cmd: []string{"sh"}, Labels: record.Config.Labels})
	orphan.Comment = catalog.CommitComment(made[0].ID)
	docker.Create(t, "user", &container.Config{Image: orphan.ID}, &container.HostConfig{})
	// A container that only has a similar name, and one of ours that is new.
	docker.Create(t, catalog.ScratchPrefix+"by-hand", &container.Config{}, &container.HostConfig{})
	docker.Create(t, "my-"+catalog.ScratchPrefix, &container.Config{Labels: map[string]string{labels.KeyVersion: "1"}}, &container.HostConfig{})
	docker.Clock = docker.Clock.Add(2 * orphanAge)
	docker.Create(t, catalog.ScratchPrefix+"new", &container.Config{Labels: map[string]string{labels.KeyVersion: "1"}}, &container.HostConfig{})
	before := docker.World()

	engineOf(docker).removal.SweepOrphans(t.Context(), docker.InfoNow(t), func(event plan.Event) { t.Error(event.Text) })

	assert.Equal(t, docker.World(), before)
	now := docker.InfoNow(t)
	docker.Fault = enginetest.Fault{At: len(docker.Calls) + 1, Kind: enginetest.FaultRefuse}
	var got enginetest.Events
	engineOf(docker).removal.SweepOrphans(t.Context(), now, got.Progress)
	assert.Equal(t, len(got.Warnings()), 1)
}
