package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/snapshot/verify"
)

// withAnonymous is an engine with a container web that has a named and an anonymous
// volume, both at one, and a snapshot of it.
func withAnonymous(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{Binds: []string{"data:/data"}})
	for _, m := range web.Mounts {
		docker.FindVolume(m.Name).Content = "one"
	}
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

// The anonymous volume of a copy has what was captured, and goes with the copy.
func TestTheAnonymousVolumeOfACopyGoesWithIt(t *testing.T) {
	for _, start := range []runconfig.Start{runconfig.StartAlways, runconfig.StartNever} {
		docker := withAnonymous(t)
		_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy", Start: start}, nil)
		assert.NilError(t, err)
		made := docker.AnonymousOf(t, "copy")
		assert.Equal(t, made.Content, "one")
		docker.Wait(time.Hour)
		_, err = engineOf(docker).Recover(t.Context(), "", nil)
		assert.NilError(t, err)
		assert.Assert(t, docker.FindContainer("copy") != nil, "a copy that is complete was taken for one that is not")
		assert.NilError(t, docker.ContainerRemove(t.Context(), "copy", container.RemoveOptions{Force: true, RemoveVolumes: true}))
		assert.Assert(t, docker.FindVolume(made.Name) == nil, docker.World())
		assert.Assert(t, docker.FindVolume("data-000065") != nil, docker.World())
	}
}

// A name that looks like an engine's is the user's if the container's configuration has it, and the volume's label does not say
// otherwise: the copy's volume must outlive the copy.
func TestAVolumeWithAChosenNameIsNotAnonymous(t *testing.T) {
	name := strings.Repeat("0f", 32)
	for what, test := range map[string]struct {
		host   container.HostConfig
		name   string
		labels map[string]string
		want   bool
	}{
		"bind":                   {container.HostConfig{Binds: []string{name + ":/data"}}, name, nil, false},
		"mount":                  {container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: name, Target: "/data"}}}, name, nil, false},
		"carried over":           {container.HostConfig{Binds: []string{name + ":/data"}}, name, map[string]string{runconfig.LabelAnonymous: ""}, true},
		"label on a chosen name": {container.HostConfig{Binds: []string{"data:/data"}}, "data", map[string]string{runconfig.LabelAnonymous: ""}, false},
	} {
		t.Run(what, func(t *testing.T) {
			docker := enginetest.New()
			docker.Create(t, "web", &container.Config{}, &test.host)
			docker.FindVolume(test.name).Labels = test.labels
			s := snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
			assert.Equal(t, s.Mounts[0].Anonymous, test.want)
			_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy"}, nil)
			assert.NilError(t, err)
			made := docker.FindContainer("copy").Mounts[0].Name
			assert.NilError(t, docker.ContainerRemove(t.Context(), "copy", container.RemoveOptions{Force: true, RemoveVolumes: true}))
			assert.Equal(t, docker.FindVolume(made) == nil, test.want, docker.World())
		})
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
		withFaults(t, []enginetest.FaultKind{enginetest.FaultDie}, withAnonymous, operate, func(t *testing.T, o enginetest.Outcome) {
			docker := o.Docker
			docker.ClientDies()
			docker.Wait(2 * copies.UnfinishedAge)
			_, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			if docker.FindContainer("copy") == nil {
				assert.Equal(t, docker.World(), o.Before)
				return
			}
			assert.Equal(t, docker.AnonymousOf(t, "copy").Content, "one")
			assert.Equal(t, docker.FindVolume("data-000065").Content, "one")
			assert.Assert(t, !strings.Contains(docker.World(), "container cua-"), docker.World())
		})
	}
}

// While a worker fills its volumes, however long that takes, a copy is not cleared away.
func TestACopyThatIsBeingFilledStays(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"/anonymous": {}}}, &container.HostConfig{})
	docker.AnonymousOf(t, "web").Content = "one"
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	others := 0
	docker.Before("apply ", 0, func() {
		docker.Wait(2 * copies.UnfinishedAge)
		engineOf(docker).copies.ClearCopies(t.Context(), func(event plan.Event) { t.Error(event.Text) })
		others++
	})
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy", Start: runconfig.StartNever}, nil)
	assert.NilError(t, err)
	assert.Equal(t, others, 1)
	assert.Equal(t, docker.AnonymousOf(t, "copy").Content, "one")
}

// In place, an anonymous volume that is gone is made anew, and is anonymous again. One
// that is there stays.
func TestAnAnonymousVolumeThatIsGoneIsMadeAgainInPlace(t *testing.T) {
	var old string
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := withAnonymous(t)
		old = docker.FindContainer("web").ID
		assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{RemoveVolumes: true}))
		docker.FindVolume("data").Content = "two"
		docker.ForgetCalls()
		return docker
	}
	operate := func(ctx context.Context, e *Engine) error {
		_, err := e.Replace(ctx, replaceOptions(), nil)
		return err
	}
	kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter, enginetest.FaultDie}
	withFaults(t, kinds, scene, operate, func(t *testing.T, o enginetest.Outcome) {
		docker := o.Docker
		docker.ClientDies()
		docker.Wait(time.Minute / 2)
		_, err := engineOf(docker).Recover(t.Context(), "", nil)
		assert.NilError(t, err, "%v", o.Err)
		web := docker.FindContainer("web")
		if web == nil {
			assert.Equal(t, docker.Data(), "two")
			assert.Equal(t, strings.Count(docker.World(), "volume "), strings.Count(o.Before, "volume "), docker.World())
			return
		}
		made := docker.AnonymousOf(t, "web")
		assert.Equal(t, made.Content+docker.Data(), "oneone")
		assert.Equal(t, made.MadeWith, web.ID)
		assert.Assert(t, web.ID != old)
	})
	docker := withAnonymous(t)
	kept := docker.AnonymousOf(t, "web")
	kept.Content = "two"
	assert.NilError(t, operate(t.Context(), engineOf(docker)))
	assert.Equal(t, docker.AnonymousOf(t, "web"), kept)
	assert.Equal(t, kept.Content, "one")
}

// An engine mounts no volume that exists at a relative path (VOLUME data), so it is refused before anything is touched. The
// volume alone can go back, and the snapshot is sound.
func TestAVolumeAtARelativePath(t *testing.T) {
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{Volumes: map[string]struct{}{"data": {}}}, &container.HostConfig{})
	volume := docker.FindVolume(web.Mounts[0].Name)
	volume.Content = "one"
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	report, err := engineOf(docker).Verify(t.Context(), verify.Options{}, nil)
	assert.NilError(t, err)
	for _, f := range report.Results[0].Findings { // nothing but that the fake has no store
		assert.Equal(t, f.Where, "volumes", "%v", f)
	}
	volume.Content = "two"
	docker.Randomness = 100
	before := docker.World()

	_, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
	problems, ok := errors.AsType[*plan.ProblemsError](err)
	assert.Assert(t, ok && len(problems.Problems) == 1 && problems.Problems[0].Kind == plan.ProblemRelative, "%v", err)
	assert.Equal(t, docker.World(), before)

	_, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}, Only: []string{"data"}}, nil)
	assert.NilError(t, err)
	assert.Equal(t, volume.Content, "one")
}
