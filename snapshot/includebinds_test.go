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

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// withWork is an engine with a running container web that has the directory /srv/work of the host on /work, and on /again,
// and the volume data. All is at one.
func withWork(t *testing.T, own map[string]string) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	for _, path := range []string{"/srv/work", "/srv/other"} {
		docker.HostPaths[path], docker.Directories[path] = true, "one"
	}
	web := docker.Create(t, "web", &container.Config{Labels: own}, &container.HostConfig{
		Binds:  []string{"/srv/work:/work:z,rslave", "/srv/other:/other", "data:/data"},
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/srv/work", Target: "/again", ReadOnly: true}},
	})
	assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
	web.Files, docker.FindVolume("data").Content = "one", "one"
	return docker
}

func includeWork() capture.Options {
	return capture.Options{Container: "web", Name: "one", Binds: capture.BindChoice{Include: []string{"/work/"}}}
}

// withWorkCaptured is the same with a snapshot web:one of it; now all are at two.
func withWorkCaptured(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withWork(t, nil)
	snapshotOf(t, docker, includeWork())
	docker.FindContainer("web").Files, docker.FindVolume("data").Content = "two", "two"
	docker.Directories["/srv/work"], docker.Directories["/srv/other"] = "two", "two"
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

func mountOn(t *testing.T, mounts []labels.Mount, destination string) labels.Mount {
	t.Helper()
	for _, m := range mounts {
		if m.Destination == destination {
			return m
		}
	}
	t.Fatalf("nothing is mounted on %s", destination)
	return labels.Mount{}
}

func TestTheContentOfABindMountIsCapturedOnRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		own map[string]string
		o   capture.Options
	}{
		"option":               {nil, includeWork()},
		"the other":            {nil, capture.Options{Container: "web", Binds: capture.BindChoice{Include: []string{"/again"}}}},
		"label":                {map[string]string{labels.KeyPolicyIncludeBind: "\n /work\n"}, capture.Options{Container: "web"}},
		"label and no volumes": {map[string]string{labels.KeyPolicyIncludeBind: "/work,/again"}, capture.Options{Container: "web", Volumes: capture.VolumeChoice{None: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withWork(t, tc.own)
			var got enginetest.Events
			s, err := engineOf(docker).Create(t.Context(), tc.o, got.Progress)
			assert.NilError(t, err)
			work, again, other := mountOn(t, s.Mounts, "/work"), mountOn(t, s.Mounts, "/again"), mountOn(t, s.Mounts, "/other")
			assert.Assert(t, work.Archive != nil && again.Archive != nil && work.Skipped+again.Skipped == "")
			assert.Equal(t, work.Archive.Index, again.Archive.Index) // they are one directory
			assert.Equal(t, docker.Service.Archives[string(s.ID)][work.Archive.Index], "one")
			assert.Assert(t, other.Archive == nil && other.Skipped != "")
			assert.DeepEqual(t, got.Notes(), []string{"bind mount /srv/other on /other: its content is not in the snapshot, and not portable"})
			assert.Equal(t, mountOn(t, s.Mounts, "/data").Archive == nil, tc.o.Volumes.None)
		})
	}
}

// ofWork is what is expected of the included bind mount of [withWork], or of a volume.
func ofWork[T any](key string, bind, volume T) T {
	if key == "/srv/work" {
		return bind
	}
	return volume
}

func TestGitignoreCountsInBindMountsUnlessRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		e            capture.Exclude
		bind, volume bool
	}{
		"nothing said": {capture.Exclude{}, true, false},
		"refused":      {capture.Exclude{NoGitignore: true}, false, false},
		"asked for":    {capture.Exclude{Exclusions: labels.Exclusions{Gitignore: true}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withWork(t, nil)
			o := includeWork()
			o.Exclude = tc.e
			s := snapshotOf(t, docker, o)
			for _, v := range docker.Service.Read[string(s.ID)] {
				want := ofWork(v.Key, tc.bind, tc.volume)
				assert.Equal(t, v.Excluded != nil && v.Excluded.Gitignore, want, v.Key)
			}
		})
	}
}

func TestLimitsAreForBindMountsUnlessSaid(t *testing.T) {
	five, none := int64(5), int64(0)
	for name, tc := range map[string]struct {
		l            capture.Limits
		bind, volume volumebackup.Limits
	}{
		"nothing said": {capture.Limits{}, volumebackup.Limits{Entries: 300_000, Bytes: 2 << 30}, volumebackup.Limits{}},
		"entries":      {capture.Limits{Entries: &five}, volumebackup.Limits{Entries: 5, Bytes: 2 << 30}, volumebackup.Limits{Entries: 5}},
		"no limit":     {capture.Limits{Entries: &none, Bytes: &none}, volumebackup.Limits{}, volumebackup.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withWork(t, nil)
			o := includeWork()
			o.Limits = tc.l
			s := snapshotOf(t, docker, o)
			for _, v := range docker.Service.Read[string(s.ID)] {
				assert.DeepEqual(t, v.Limits, ofWork(v.Key, tc.bind, tc.volume))
			}
		})
	}
}

func TestABindMountThatCannotBeCapturedChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		own     map[string]string
		include string
		mounts  []mount.Mount
		err     string
	}{
		"none there":    {nil, "/nope", nil, "container web has no bind mount on /nope: it has /again, /other, /work"},
		"a volume":      {nil, "/data", nil, "container web has no bind mount on /data"},
		"by label":      {map[string]string{labels.KeyPolicyIncludeBind: "/nope"}, "", nil, "label cua.snapshot.policy.include-bind: container web has no bind mount on /nope"},
		"the host":      {nil, "/host", []mount.Mount{{Type: mount.TypeBind, Source: "/", Target: "/host"}}, "it is the whole host"},
		"unprintable":   {nil, "/odd", []mount.Mount{{Type: mount.TypeBind, Source: "/srv/a\nb", Target: "/odd"}}, "cannot be captured"},
		"the store":     {nil, "/store", []mount.Mount{{Type: mount.TypeBind, Source: "/volumes/cua-snapshots", Target: "/store"}}, "the store of the snapshots, volume cua-snapshots, is in it"},
		"above a store": {nil, "/store", []mount.Mount{{Type: mount.TypeBind, Source: "/volumes", Target: "/store"}}, "the store of the snapshots, volume cua-snapshots, is in it"},
	} {
		t.Run(name, func(t *testing.T) {
			docker := withWork(t, tc.own)
			docker.Volumes = append(docker.Volumes, &enginetest.FakeVolume{Name: "cua-snapshots"})
			for _, m := range tc.mounts {
				web := docker.FindContainer("web")
				web.Mounts = append(web.Mounts, container.MountPoint{Type: m.Type, Source: m.Source, Destination: m.Target, RW: true})
			}
			o := includeWork()
			o.Binds.Include = nil
			if tc.include != "" {
				o.Binds.Include = []string{tc.include}
			}
			before := docker.World()
			_, err := engineOf(docker).Create(t.Context(), o, nil)
			assert.ErrorContains(t, err, tc.err)
			assert.Equal(t, docker.World(), before)
		})
	}
}

// Whoever can write to the directory, or to a part of it or around it, stands still.
func TestWritersOfABindMountAreFrozen(t *testing.T) {
	docker := withWork(t, nil)
	for name, bind := range map[string]string{"same": "/srv/work:/w", "part": "/srv/work/deep:/w", "around": "/srv:/w", "reader": "/srv/work:/w:ro", "stranger": "/srv/else:/w"} {
		runWith(t, docker, name, &container.HostConfig{Binds: []string{bind}})
	}
	frozen := map[string]bool{}
	docker.InCommit = func() {
		for _, c := range docker.Containers {
			if c.State == "paused" {
				frozen[c.Name] = true
			}
		}
	}
	snapshotOf(t, docker, includeWork())
	assert.DeepEqual(t, frozen, map[string]bool{"web": true, "same": true, "part": true, "around": true})
}

func TestCreateWithABindMountIsAllOrNothing(t *testing.T) {
	scene := func(t *testing.T) *enginetest.Docker { t.Helper(); return withWork(t, nil) }
	operate := func(ctx context.Context, e *Engine) error {
		_, err := e.Create(ctx, includeWork(), nil)
		return err
	}
	kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter, enginetest.FaultDie}
	withFaults(t, kinds, scene, operate, func(t *testing.T, o enginetest.Outcome) {
		docker := o.Docker
		recoverDead(t, docker)
		assert.Equal(t, docker.FindContainer("web").State, "running")
		assert.Equal(t, docker.Directories["/srv/work"], "one")
		all, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
		assert.NilError(t, err)
		for _, s := range all {
			assert.Equal(t, docker.Service.Archives[string(s.ID)][mountOn(t, s.Mounts, "/work").Archive.Index], "one")
		}
		assert.Assert(t, o.Err != nil || len(all) == 1)
	})
}

// recoverDead puts right what a client has left that is gone by now.
func recoverDead(t *testing.T, docker *enginetest.Docker) {
	t.Helper()
	docker.ClientDies()
	docker.Wait(time.Minute / 2) // what was made and never ran counts as dead
	_, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
}

func TestABindMountGoesBackInPlace(t *testing.T) {
	docker := withWorkCaptured(t)
	var got enginetest.Events
	done, err := engineOf(docker).Replace(t.Context(), replaceOptions(), got.Progress)
	assert.NilError(t, err)
	assert.Equal(t, docker.Directories["/srv/work"], "one")
	assert.Equal(t, docker.Directories["/srv/other"], "two") // nobody captured it
	assert.Equal(t, docker.FindVolume("data").Content, "one")
	assert.Assert(t, strings.Contains(done.Plan.String(), "restore bind mount /srv/work"), done.Plan.String())
	assert.DeepEqual(t, got.Notes(), []string{"bind mount /srv/other on /other: its content is not in the snapshot and stays as it is"})
	assert.Assert(t, mountOn(t, done.Safety.Mounts, "/work").Archive != nil && mountOn(t, done.Safety.Mounts, "/other").Archive == nil)
	for _, v := range docker.Service.Read[string(done.Safety.ID)] {
		assert.DeepEqual(t, v.Limits, volumebackup.Limits{}) // nothing may keep the safety snapshot from being whole
	}
	assertNothingLeft(t, docker)

	back := replaceOptions()
	back.Snapshot = string(done.Safety.ID)
	docker.Randomness += 50
	_, err = engineOf(docker).Replace(t.Context(), back, nil)
	assert.NilError(t, err)
	assert.Equal(t, docker.Directories["/srv/work"], "two")
}

func TestOnlyABindMountGoesBack(t *testing.T) {
	for _, word := range []string{"/work", "/again", "/srv/work"} {
		docker := withWorkCaptured(t)
		_, err := engineOf(docker).Replace(t.Context(), only(word), nil)
		assert.NilError(t, err)
		assert.Equal(t, docker.Directories["/srv/work"], "one")
		assert.Equal(t, docker.FindVolume("data").Content, "two")
		assert.Equal(t, docker.FindContainer("web").Files, "two")
	}
	docker := withWorkCaptured(t)
	_, err := engineOf(docker).Replace(t.Context(), only("/other"), nil)
	assert.ErrorContains(t, err, `there is nothing "/other" to restore alone: the snapshot has /srv/work (/again, /work), data (/data), rootfs`)
}

// Whatever goes wrong with whichever call: everything is what it was, or what was captured, if need be after one recovery.
func TestABindMountGoesBackOrNothingDoes(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]replace.Options{"everything": replaceOptions(), "only it": only("/work")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operate := func(ctx context.Context, e *Engine) error {
				_, err := e.Replace(ctx, o, nil)
				return err
			}
			kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter, enginetest.FaultDie}
			withFaults(t, kinds, withWorkCaptured, operate, func(t *testing.T, out enginetest.Outcome) {
				docker := out.Docker
				recoverDead(t, docker)
				web := docker.FindContainer("web")
				assert.Assert(t, web != nil && web.State == "running")
				assert.Assert(t, !strings.Contains(docker.Directories["/srv/work"], "half"), docker.World())
				if out.Err == nil {
					assert.Equal(t, docker.Directories["/srv/work"], "one")
				}
				if len(o.Only) == 0 {
					assert.Equal(t, docker.Directories["/srv/work"], web.Files)
					assert.Equal(t, docker.Directories["/srv/work"], docker.FindVolume("data").Content)
				}
				assert.Equal(t, docker.Directories["/srv/other"], "two")
				assertNothingLeft(t, docker)
			})
		})
	}
}

func TestADirectoryThatIsGoneIsFoundFirst(t *testing.T) {
	for name, o := range map[string]replace.Options{"everything": replaceOptions(), "only it": only("/work")} {
		t.Run(name, func(t *testing.T) {
			docker := withWorkCaptured(t)
			delete(docker.HostPaths, "/srv/work")
			before := docker.World()
			_, err := engineOf(docker).Replace(t.Context(), o, nil)
			found, ok := errors.AsType[*plan.ProblemsError](err)
			assert.Assert(t, ok, "%v", err)
			assert.Equal(t, len(found.Problems), 1)
			assert.Equal(t, found.Problems[0].Kind, plan.ProblemNoBindSource)
			assert.Equal(t, found.Problems[0].Subject, "/srv/work")
			assert.Equal(t, docker.World(), before)
		})
	}
	t.Run("left out", func(t *testing.T) {
		docker := withWorkCaptured(t)
		delete(docker.HostPaths, "/srv/work")
		o := replaceOptions()
		o.SkipMissing = true
		_, err := engineOf(docker).Replace(t.Context(), o, nil)
		assert.NilError(t, err)
		assert.Equal(t, docker.FindVolume("data").Content, "one")
		assert.Equal(t, docker.Directories["/srv/work"], "two")
		assert.Assert(t, docker.FindVolume("/srv/work") == nil)
	})
}

func TestACopyGetsAVolumeInsteadOfTheBindMount(t *testing.T) {
	docker := withWorkCaptured(t)
	var got enginetest.Events
	made, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one"}, got.Progress)
	assert.NilError(t, err)
	points := map[string]container.MountPoint{}
	for _, m := range docker.FindContainer(made.ContainerID).Mounts {
		points[m.Destination] = m
	}
	work := points["/work"]
	assert.Equal(t, work.Type, mount.TypeVolume)
	assert.Assert(t, strings.HasPrefix(work.Name, "again-"), work.Name) // the first of the two places
	assert.Assert(t, work.RW)
	assert.Equal(t, points["/again"].Name, work.Name)
	assert.Assert(t, !points["/again"].RW)
	assert.Equal(t, docker.FindVolume(work.Name).Content, "one")
	assert.Equal(t, points["/other"].Type, mount.TypeBind)
	assert.Equal(t, docker.Directories["/srv/work"], "two")
	assert.DeepEqual(t, got.Notes(), []string{"bind mount /srv/other on /other: its content is not in the snapshot; it is read-only in the copy"})
}

func TestACopyThatSharesTheVolumesHasTheBindMount(t *testing.T) {
	docker := withWorkCaptured(t)
	var got enginetest.Events
	o := runconfig.RestoreOptions{Snapshot: "web:one", Volumes: runconfig.VolumesShared, Binds: runconfig.BindsShared}
	_, err := engineOf(docker).Restore(t.Context(), o, got.Progress)
	assert.NilError(t, err)
	assert.DeepEqual(t, got.Notes(), []string{
		"bind mount /srv/work on /work: its content is what the host has now, not what the snapshot holds; the copy writes to the same files as the original",
		"bind mount /srv/other on /other: its content is not in the snapshot; the copy writes to the same files as the original",
		"bind mount /srv/work on /again: its content is what the host has now, not what the snapshot holds",
	})
}
