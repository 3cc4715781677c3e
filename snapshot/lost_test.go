package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// cleanUp does what docker system prune -a does: it removes the images that no container uses.
func cleanUp(docker *enginetest.Docker) {
	docker.Images = slices.DeleteFunc(docker.Images, func(img *enginetest.FakeImage) bool {
		return slices.ContainsFunc(img.Tags, func(tag string) bool { return strings.HasPrefix(tag, catalog.Namespace) })
	})
}

// withLost is [withTwoVolumes] after a clean-up: the snapshot web:one has no image any more, nor has a worker.
func withLost(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withTwoVolumes(t)
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: docker.Service.Store(), Labels: map[string]string{labels.KeyStoreID: "one"}})
	assert.NilError(t, err)
	cleanUp(docker)
	assert.NilError(t, docker.Service.LoadImage(t.Context()))
	docker.ForgetCalls()
	return docker
}

// lostID is the only lost snapshot there is.
func lostID(t *testing.T, docker *enginetest.Docker) string {
	t.Helper()
	all, err := engineOf(docker).Lost(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 1)
	return string(all[0].ID)
}

func TestLostSnapshotsAreListedByTheirRecords(t *testing.T) {
	docker := withTwoVolumes(t)
	engine := engineOf(docker)
	kept, err := engine.Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	all, err := engine.Lost(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 0)
	text := "pinned by hand"
	_, err = engine.Annotate(t.Context(), capture.Annotation{Snapshot: "web:one", Description: &text}, nil)
	assert.NilError(t, err)

	cleanUp(docker)
	all, err = engine.Lost(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 1)
	one := all[0]
	assert.Equal(t, one.ID, kept.ID)
	assert.Equal(t, one.Name, "one")
	assert.Equal(t, one.Description, text, "annotate tells the store")
	assert.Equal(t, one.Container, kept.Container)
	assert.DeepEqual(t, one.Config, kept.Config)
	assert.DeepEqual(t, one.Mounts, kept.Mounts)
	assert.Assert(t, !one.Foreign)
	assert.Assert(t, one.Until.After(one.Since))

	for word, found := range map[string]bool{"container=web": true, "container=db": false, "name=one": true, "name=two": false} {
		filter, err := catalog.ParseFilter([]string{word}, docker.Clock)
		assert.NilError(t, err)
		all, err := engine.Lost(t.Context(), catalog.ListOptions{Filter: filter}, nil)
		assert.NilError(t, err)
		assert.Equal(t, len(all) == 1, found, word)
	}
}

// A store that cannot be read keeps nobody from what another one has.
func TestLostSnapshotsAreFoundBesideAStoreThatCannotBeRead(t *testing.T) {
	docker := withLost(t)
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: "broken", Labels: map[string]string{labels.KeyStoreID: "two"}})
	assert.NilError(t, err)
	docker.Refused = []string{"list lost in broken"}
	var got enginetest.Events
	all, err := engineOf(docker).Lost(t.Context(), catalog.ListOptions{}, got.Progress)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 1)
	assert.Equal(t, len(got.Warnings()), 1)
	assert.Assert(t, strings.Contains(got.Warnings()[0], "refused list lost in broken"), got.Warnings()[0])
	_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: string(all[0].ID), Lost: true, Name: "copy"}, nil)
	assert.NilError(t, err)

	docker.Refused = []string{"list lost in " + docker.Service.Store()}
	_, err = engineOf(docker).Lost(t.Context(), catalog.ListOptions{}, nil)
	assert.ErrorContains(t, err, "refused list lost in "+docker.Service.Store())
	docker.Refused = nil
	interrupted, stop := context.WithCancel(t.Context())
	docker.Before("list lost in broken", 0, stop)
	_, err = engineOf(docker).Lost(interrupted, catalog.ListOptions{}, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

// Whatever somebody has written to a store, a record is believed only if the engine has sealed it.
func TestARecordIsNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil           func(labels map[string]string) map[string]string
		listed, foreign bool
	}{
		"untouched": {func(all map[string]string) map[string]string { return all }, true, false},
		"changed":   {func(all map[string]string) map[string]string { all[labels.KeyDescription] = "evil"; return all }, true, true},
		"of another": {func(all map[string]string) map[string]string {
			all[labels.KeyID] = "20200101-000000-000000"
			return all
		}, false, false},
		"no record": {func(map[string]string) map[string]string { return nil }, false, false},
		"nonsense":  {func(all map[string]string) map[string]string { all[labels.KeyMounts] = "{"; return all }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withLost(t)
			for id, origin := range docker.Service.Origins {
				origin.Labels = tc.spoil(origin.Labels)
				docker.Service.Origins[id] = origin
			}
			var got enginetest.Events
			all, err := engineOf(docker).Lost(t.Context(), catalog.ListOptions{}, got.Progress)
			assert.NilError(t, err)
			assert.Equal(t, len(all) == 1, tc.listed)
			assert.Equal(t, len(got.Warnings()) == 1, !tc.listed)
			if tc.listed {
				assert.Equal(t, all[0].Foreign, tc.foreign)
			}
		})
	}
}

func TestALostSnapshotComesBackInPlace(t *testing.T) {
	docker := withLost(t)
	old := docker.FindContainer("web").ID
	o := replaceOptions()
	o.Lost, o.Snapshot, o.DryRun = true, lostID(t, docker), true
	var got enginetest.Events
	planned, err := engineOf(docker).Replace(t.Context(), o, got.Progress)
	assert.NilError(t, err)
	assert.Equal(t, stateOfWeb(docker), "two two two running always", "a dry run changes nothing")
	assert.Assert(t, planned.Keeps && planned.Saves)

	o.DryRun = false
	done, err := engineOf(docker).Replace(t.Context(), o, got.Progress)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("web").ID, old)
	assert.Equal(t, stateOfWeb(docker), "two one one running always")
	assertNothingLeft(t, docker)

	docker.Randomness += 50
	back := only("data", "logs")
	back.Snapshot = string(done.Safety.ID)
	_, err = engineOf(docker).Replace(t.Context(), back, nil)
	assert.NilError(t, err)
	assert.Equal(t, stateOfWeb(docker), "two two two running always")
}

// TestALostSnapshotComesBackOrNothingChanges fails each call: the container runs, with what it had or with all volumes
// of the snapshot.
func TestALostSnapshotComesBackOrNothingChanges(t *testing.T) {
	t.Parallel()
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := withLost(t)
		docker.Service.Missed[lostID(t, docker)] = docker.Clock
		docker.ForgetCalls()
		return docker
	}
	withEachFault(t, scene, func(ctx context.Context, engine *Engine) error {
		o := replaceOptions()
		o.Lost, o.Snapshot = true, "web"
		_, err := engine.Replace(ctx, o, nil)
		return err
	}, func(t *testing.T, o enginetest.Outcome) {
		state := stateOfWeb(o.Docker)
		want := "two two two running always"
		if o.Err == nil {
			want = "two one one running always"
		}
		assert.Equal(t, state, want, "%v", o.Err)
	})
}

func TestALostSnapshotComesBackAsACopy(t *testing.T) {
	docker := withLost(t)
	id := lostID(t, docker)
	base := docker.FindContainer("web").Image
	var got enginetest.Events
	restored, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: id, Lost: true, Name: "copy"}, got.Progress)
	assert.NilError(t, err)
	assert.Assert(t, slices.ContainsFunc(got.Warnings(), func(text string) bool { return strings.Contains(text, "is gone: only its volumes are as they were") }), got.Warnings())
	made := docker.FindContainer("copy")
	assert.Equal(t, made.Image, base)
	assert.Equal(t, made.Config.Labels[labels.KeyRestoredFrom], id)
	assert.Equal(t, restored.ContainerID, made.ID)
	for _, bind := range made.Host.Binds {
		name, _, _ := strings.Cut(bind, ":")
		assert.Equal(t, docker.FindVolume(name).Content, "one", bind)
	}
	assert.Equal(t, stateOfWeb(docker), "two two two running always")

	docker.Images = slices.DeleteFunc(docker.Images, func(img *enginetest.FakeImage) bool { return img.ID == base })
	_, err = engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: id, Lost: true, Name: "another"}, nil)
	none, ok := err.(*archives.NoBaseError) //nolint:errorlint // it is returned as it is
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, string(none.Snapshot), id)
	assert.Assert(t, docker.FindContainer("another") == nil)
}

// Of an image that a container uses, a clean-up takes all tags but one. While that is there the snapshot can be had whole.
func TestWhoHasLostOnlyItsTagIsNotLost(t *testing.T) {
	docker := withTwoVolumes(t)
	engine := engineOf(docker)
	one, err := engine.Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	_, err = docker.ImageRemove(t.Context(), one.Ref(), image.RemoveOptions{})
	assert.NilError(t, err)
	before := docker.World()
	inPlace := replaceOptions()
	inPlace.Lost, inPlace.Snapshot = true, string(one.ID)
	for name, ask := range map[string]func() error{
		"by its name": func() error { _, err := engine.Resolve(t.Context(), "web:one"); return err },
		"as a copy": func() error {
			_, err := engine.Restore(t.Context(), runconfig.RestoreOptions{Snapshot: string(one.ID), Lost: true, Name: "copy"}, nil)
			return err
		},
		"in place": func() error { _, err := engine.Replace(t.Context(), inPlace, nil); return err },
	} {
		untagged, ok := errors.AsType[*catalog.UntaggedError](ask())
		assert.Assert(t, ok, name)
		assert.Equal(t, untagged.ID, one.ID)
		assert.Equal(t, untagged.IDRef, one.Ref())
		assert.Assert(t, strings.HasPrefix(untagged.Ref, "cua-snapshot/web:"), untagged.Ref)
		assert.Equal(t, docker.World(), before)
	}
	assert.NilError(t, docker.ImageTag(t.Context(), one.ImageID, one.Ref()))
	again, err := engine.Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	assert.DeepEqual(t, again, one)
}

// An image that was built FROM a snapshot has its labels, and may have a name of its repository. It is not what was lost.
func TestWhatWasBuiltFromALostSnapshotIsAnother(t *testing.T) {
	docker := withTwoVolumes(t)
	engine := engineOf(docker)
	one, err := engine.Resolve(t.Context(), "web:one")
	assert.NilError(t, err)
	docker.FindImage(one.ImageID).Comment = "built"
	_, err = docker.ImageRemove(t.Context(), one.Ref(), image.RemoveOptions{})
	assert.NilError(t, err)
	_, err = engine.Resolve(t.Context(), "web:one")
	_, none := errors.AsType[*catalog.NotFoundError](err)
	assert.Assert(t, none, "%v", err)
	o := replaceOptions()
	o.Lost, o.Snapshot = true, string(one.ID)
	_, err = engine.Replace(t.Context(), o, nil)
	assert.NilError(t, err)
}

func TestWhatALostSnapshotCannotBringBack(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*enginetest.Docker, *replace.Options)
		kind   plan.ProblemKind
		want   string
	}{
		"no container": {func(docker *enginetest.Docker, _ *replace.Options) {
			docker.Containers = nil
		}, plan.ProblemLostNoTarget, ""},
		"no volume": {func(docker *enginetest.Docker, _ *replace.Options) {
			docker.FindContainer("web").Mounts = nil
		}, plan.ProblemLostUnused, ""},
		"rootfs":  {func(_ *enginetest.Docker, o *replace.Options) { o.Only = []string{replace.Rootfs} }, "", `nothing "rootfs" to restore alone`},
		"unknown": {func(_ *enginetest.Docker, o *replace.Options) { o.Snapshot = "nobody" }, "", "no lost snapshot nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withLost(t)
			o := replaceOptions()
			o.Lost, o.Snapshot = true, lostID(t, docker)
			tc.change(docker, &o)
			before := docker.World()
			_, err := engineOf(docker).Replace(t.Context(), o, nil)
			if tc.kind == "" {
				assert.ErrorContains(t, err, tc.want)
			} else {
				problems, ok := err.(*plan.ProblemsError) //nolint:errorlint // joined errors would fail the test, as they should
				if !ok {
					joined, isJoined := err.(interface{ Unwrap() []error })
					assert.Assert(t, isJoined, "%v", err)
					problems, ok = joined.Unwrap()[0].(*plan.ProblemsError) //nolint:errorlint // as above
				}
				assert.Assert(t, ok, "%v", err)
				assert.Assert(t, slices.ContainsFunc(problems.Problems, func(p plan.Problem) bool { return p.Kind == tc.kind }), "%v", err)
			}
			assert.Equal(t, docker.World(), before)
		})
	}
}

func TestALostSnapshotIsRemovedByItsID(t *testing.T) {
	docker := withLost(t)
	id := lostID(t, docker)
	done := engineOf(docker).Remove(t.Context(), []string{"nobody", id}, removal.Options{}, nil)
	assert.Assert(t, cerrdefs.IsNotFound(done[0].Err))
	none, ok := done[0].Err.(*catalog.NotFoundError) //nolint:errorlint // it is returned as it is
	assert.Assert(t, ok && none.Lost)
	assert.NilError(t, done[1].Err)
	assert.Equal(t, string(done[1].Snapshot.ID), id)
	all, err := engineOf(docker).Lost(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(all), 0)
}

// A clean-up is told of by list without a worker, and by a sweep with what was lost; each once.
func TestACleanUpIsToldOfOnce(t *testing.T) {
	topics := func(events *enginetest.Events) (all []plan.Topic) {
		for _, e := range events.All {
			if e.Topic != "" {
				all = append(all, e.Topic)
			}
		}
		return all
	}
	docker := withTwoVolumes(t)
	_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: docker.Service.Store(), Labels: map[string]string{labels.KeyStoreID: "one"}})
	assert.NilError(t, err)
	list := func() []plan.Topic {
		var got enginetest.Events
		docker.ForgetCalls()
		_, err := engineOf(docker).List(t.Context(), catalog.ListOptions{Container: "web"}, got.Progress)
		assert.NilError(t, err)
		return topics(&got)
	}
	sweep := func() []plan.Topic {
		var got enginetest.Events
		engineOf(docker).Sweep(t.Context(), got.Progress)
		return topics(&got)
	}
	assert.Equal(t, len(list()), 0)
	assert.Equal(t, len(sweep()), 0)
	cleanUp(docker)
	assert.DeepEqual(t, list(), []plan.Topic{plan.TopicCleaned})
	assert.Equal(t, len(list()), 0)
	assert.DeepEqual(t, sweep(), []plan.Topic{plan.TopicLost})
	assert.Equal(t, len(sweep()), 0)
}
