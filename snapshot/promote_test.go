package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// withCopy is the engine of [withTwoVolumes] with a copy of web:one, which is at three.
func withCopy(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := withTwoVolumes(t)
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy", Env: []string{"A=copy"}}, nil)
	assert.NilError(t, err)
	docker.FindContainer("copy").Files = "three"
	for _, m := range docker.FindContainer("copy").Mounts {
		docker.FindVolume(m.Name).Content = "three"
	}
	docker.Wait(time.Minute)
	docker.Randomness = 200
	docker.ForgetCalls()
	return docker
}

func promotion() replace.Options {
	return replace.Options{Copy: "copy", RestoreOptions: runconfig.RestoreOptions{Waiting: runconfig.Waiting{Wait: true}}}
}

// volumesOf are the names of the volumes of a container.
func volumesOf(c *enginetest.FakeContainer) []string {
	var names []string
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume {
			names = append(names, m.Name)
		}
	}
	return names
}

func TestPromoteTakesThePlaceOfTheOriginal(t *testing.T) {
	docker := withCopy(t)
	copied, old := volumesOf(docker.FindContainer("copy")), docker.FindContainer("web").ID
	done, err := engineOf(docker).Replace(t.Context(), promotion(), nil)
	assert.NilError(t, err)
	assert.Equal(t, stateOfWeb(docker), "three three three running always")
	web := docker.FindContainer("web")
	assert.Assert(t, web.ID != old && web.ID == done.ContainerID)
	assert.DeepEqual(t, volumesOf(web), []string{"data", "logs"})
	assert.DeepEqual(t, web.Host.Binds, []string{"data:/data", "logs:/var/log"})
	assert.Assert(t, strings.Contains(strings.Join(web.Config.Env, " "), "A=copy"))
	assert.Equal(t, web.Config.Labels[labels.KeyCopyOf], "")
	assert.Equal(t, done.Copy, "copy")
	assert.Equal(t, done.Snapshot.Container.Name, "web")
	assert.Equal(t, done.Safety.Restores, done.Snapshot.ID)
	assert.Assert(t, docker.FindContainer("copy") == nil)
	for _, name := range copied {
		assert.Assert(t, docker.FindVolume(name) == nil, name)
	}
	assertNothingLeft(t, docker)

	for _, step := range []struct{ id, want string }{
		{string(done.Safety.ID), "two two two running always"},
		{string(done.Snapshot.ID), "three three three running always"},
	} {
		back := replaceOptions()
		back.Snapshot = step.id
		docker.Randomness += 50
		_, err = engineOf(docker).Replace(t.Context(), back, nil)
		assert.NilError(t, err)
		assert.Equal(t, stateOfWeb(docker), step.want)
	}
}

func TestPromoteKeepsTheNetworksPortsAndComposeLabelsOfTheOriginal(t *testing.T) {
	docker := enginetest.New()
	docker.Networks["front"] = "f1"
	web := docker.Create(t, "web", &container.Config{
		Hostname: "shop", Labels: map[string]string{"com.docker.compose.service": "web", "mine": "1"},
	}, &container.HostConfig{
		NetworkMode: "front", PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}},
	})
	web.Endpoints = map[string]*network.EndpointSettings{"front": docker.Endpoint("front", &network.EndpointSettings{Aliases: []string{"shop"}})}
	assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy"}, nil)
	assert.NilError(t, err)
	docker.Randomness += 50
	_, err = engineOf(docker).Replace(t.Context(), promotion(), nil)
	assert.NilError(t, err)
	now := docker.FindContainer("web")
	assert.Assert(t, now.ID != web.ID)
	assert.Equal(t, now.Config.Hostname, "shop")
	assert.Equal(t, now.Config.Labels["com.docker.compose.service"], "web")
	assert.DeepEqual(t, now.Host.PortBindings, nat.PortMap{"80/tcp": {{HostPort: "8080"}}})
	assert.DeepEqual(t, now.Endpoints["front"].Aliases, []string{"shop"})
}

// Whatever goes wrong with whichever call: either the copy has taken the place and is gone, or all is as it was, if need
// be after one recovery.
func TestPromoteIsDoneOrNothingIs(t *testing.T) {
	t.Parallel()
	scenes := map[string]func(*testing.T, *enginetest.Docker){
		"both run":         func(*testing.T, *enginetest.Docker) {},
		"the copy stopped": func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("copy").State = "exited" },
		"the copy paused":  func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("copy").State = "paused" },
		"web stopped":      func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("web").State = "exited" },
		"web with --rm": func(_ *testing.T, docker *enginetest.Docker) {
			docker.FindContainer("web").Host.AutoRemove, docker.FindContainer("web").Host.RestartPolicy = true, container.RestartPolicy{}
		},
		"web gone": func(t *testing.T, docker *enginetest.Docker) {
			assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
		},
		"beside another": func(t *testing.T, docker *enginetest.Docker) {
			runWith(t, docker, "reader", &container.HostConfig{Binds: []string{"data:/d"}})
		},
	}
	for name, change := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before promoteBefore
			scene := func(t *testing.T) *enginetest.Docker {
				t.Helper()
				docker := withCopy(t)
				change(t, docker)
				before = seeBefore(docker)
				docker.ForgetCalls()
				return docker
			}
			operate := func(ctx context.Context, e *Engine) error {
				o := promotion()
				o.StopOthers = true
				_, err := e.Replace(ctx, o, nil)
				return err
			}
			kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultDie}
			if name == "both run" {
				kinds = append(kinds, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter)
			}
			withFaults(t, kinds, scene, operate, func(t *testing.T, o enginetest.Outcome) { checkPromoted(t, o, before) })
		})
	}
}

// promoteBefore is what there was before a copy was promoted.
type promoteBefore struct {
	web     *enginetest.FakeContainer
	copied  enginetest.FakeContainer
	volumes []string
}

func seeBefore(docker *enginetest.Docker) promoteBefore {
	b := promoteBefore{copied: *docker.FindContainer("copy")}
	b.volumes = volumesOf(&b.copied)
	if web := docker.FindContainer("web"); web != nil {
		seen := *web
		b.web = &seen
	}
	return b
}

func checkPromoted(t *testing.T, o enginetest.Outcome, before promoteBefore) {
	t.Helper()
	docker := o.Docker
	docker.ClientDies()
	docker.Wait(time.Minute / 2) // what was made and never ran counts as dead
	_, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err, "%v", o.Err)
	assertNothingLeft(t, docker)
	if reader := docker.FindContainer("reader"); reader != nil {
		assert.Equal(t, reader.State, "running")
	}
	list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	copied := docker.FindContainer("copy")
	if copied == nil {
		web := docker.FindContainer("web")
		assert.Assert(t, web != nil, docker.World())
		assert.Equal(t, web.Files+docker.FindVolume("data").Content+docker.FindVolume("logs").Content, "threethreethree", docker.World())
		for _, name := range before.volumes {
			assert.Assert(t, docker.FindVolume(name) == nil, docker.World())
		}
		assert.Equal(t, len(list), 3, docker.World()) // or, if the original is gone, that of its volumes
		return
	}
	assert.Assert(t, o.Err != nil || o.Kind == enginetest.FaultDie, docker.World())
	assert.Equal(t, copied.ID+copied.State+copied.Files, before.copied.ID+before.copied.State+"three", "%v: %s", o.Err, docker.World())
	for _, name := range before.volumes {
		assert.Equal(t, docker.FindVolume(name).Content, "three")
	}
	assert.Equal(t, docker.FindVolume("data").Content+docker.FindVolume("logs").Content, "twotwo", docker.World())
	if before.web == nil {
		assert.Assert(t, docker.FindContainer("web") == nil, docker.World())
		assert.Equal(t, len(list), 1, docker.World())
		return
	}
	web := docker.FindContainer("web")
	assert.Assert(t, web != nil, docker.World())
	assert.Equal(t, web.State, before.web.State, docker.World())
	assert.Equal(t, web.Files, "two", docker.World())
	if before.web.Host.AutoRemove && web.ID != before.web.ID { // made again from its safety snapshot, which stays
		assert.Equal(t, len(list), 2, docker.World())
		return
	}
	assert.Equal(t, web.ID, before.web.ID)
	assert.Equal(t, len(list), 1, docker.World())
}

func TestWhatCannotBePromoted(t *testing.T) {
	for want, change := range map[plan.ProblemKind]func(docker *enginetest.Docker){
		plan.ProblemCopyState: func(docker *enginetest.Docker) { docker.FindContainer("copy").State = "restarting" },
		plan.ProblemVolumeInUse: func(docker *enginetest.Docker) {
			runWith(t, docker, "reader", &container.HostConfig{Binds: []string{volumesOf(docker.FindContainer("copy"))[0] + ":/d"}})
		},
		plan.ProblemCopyMount: func(docker *enginetest.Docker) {
			assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
			runWith(t, docker, "web", &container.HostConfig{Binds: []string{"logs:/var/log"}})
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			docker := withCopy(t)
			change(docker)
			before := docker.World()
			_, err := engineOf(docker).Replace(t.Context(), promotion(), nil)
			problems, ok := errors.AsType[*plan.ProblemsError](err)
			assert.Assert(t, ok, "%s: %v", want, err)
			assert.Equal(t, problems.Problems[0].Kind, want)
			assert.Equal(t, docker.World(), before)
		})
	}
	docker := withCopy(t)
	docker.FindContainer("web").State = "dead"
	_, err := engineOf(docker).Replace(t.Context(), promotion(), nil)
	assert.ErrorContains(t, err, "container web is dead")

	docker = withCopy(t)
	before := docker.World()
	for _, word := range []string{"web", "nobody"} {
		o := promotion()
		o.Copy = word
		_, err := engineOf(docker).Replace(t.Context(), o, nil)
		assert.Assert(t, err != nil)
		_, isNone := errors.AsType[*replace.NotCopyError](err)
		assert.Equal(t, isNone, word == "web", "%v", err)
		assert.Equal(t, docker.World(), before)
	}
	o := promotion()
	o.DryRun = true
	planned, err := engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.Assert(t, strings.Contains(planned.Plan.String(), "copy"), planned.Plan.String())
	assert.Equal(t, docker.World(), before)
}
