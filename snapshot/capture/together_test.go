package capture

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// twoContainers is an engine with the containers web and db, which share a volume and have one each,
// and plain, which has none.
func twoContainers(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	binds := map[string][]string{"web": {"shared:/s", "webdata:/d"}, "db": {"shared:/s", "dbdata:/d"}}
	for _, name := range []string{"web", "db", "plain"} { // each time with the same IDs
		docker.Create(t, name, &container.Config{}, &container.HostConfig{Binds: binds[name]}).State = "running"
	}
	for _, name := range []string{"shared", "webdata", "dbdata"} {
		docker.FindVolume(name).Content = name + " one"
	}
	return docker
}

// takeTogether takes a snapshot of each of the containers.
func takeTogether(ctx context.Context, docker *enginetest.Docker, names ...string) ([]Created, error) {
	cr := capturerOf(docker)
	when, err := cr.NewRequest(len(names))
	if err != nil {
		return nil, err
	}
	var o []Options
	for _, name := range names {
		o = append(o, Options{Container: name})
	}
	return cr.TakeWithin(ctx, when, o, nil)
}

// runs tells whether all containers run, and no worker is left.
func runs(docker *enginetest.Docker) bool {
	return !slices.ContainsFunc(docker.Containers, func(c *enginetest.FakeContainer) bool {
		return c.State != "running" || strings.HasPrefix(c.Name, "cua-snapshot-")
	})
}

// Everybody stands still from before the first volume is read for the last time until after the last
// container is committed: what is written in between is in none of the snapshots.
func TestSnapshotsTakenTogetherAreOfOneMoment(t *testing.T) {
	for _, names := range [][]string{{"web", "db"}, {"db", "web"}, {"web", "plain"}, {"plain", "web"}, {"plain", "db", "web"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			docker := twoContainers(t)
			stands := func(why string) {
				for _, name := range names {
					assert.Check(t, cmp.Equal(docker.FindContainer(name).State, "paused"), "%s: %s", why, name) // not Assert: this is another goroutine
				}
			}
			for n := range names {
				docker.Before("ContainerCommit", n, func() { stands("commit") })
			}
			created, err := takeTogether(t.Context(), docker, names...)
			assert.NilError(t, err)
			assert.Assert(t, runs(docker), docker.World())
			assert.Equal(t, docker.Count("ContainerCommit"), len(names))
			for i, s := range created {
				assert.Equal(t, s.Container.Name, names[i])
				assert.Equal(t, s.Created, created[0].Created)
				assert.Assert(t, s.Frozen > 0)
				assert.Assert(t, slices.Contains(docker.FindImage(s.ImageID).Tags, s.Ref()))
				var want []string
				for _, m := range s.Mounts {
					want = append(want, docker.FindVolume(m.Name).Content)
				}
				slices.Sort(want)
				got := slices.Clone(docker.Service.Archives[string(s.ID)])
				slices.Sort(got)
				assert.DeepEqual(t, got, want) // the volume that they share is in both
			}
		})
	}
}

// Whoever else writes to a volume of any of them stands still as well.
func TestWritersOfAllAreFrozenTogether(t *testing.T) {
	docker := twoContainers(t)
	docker.Create(t, "writer", &container.Config{}, &container.HostConfig{Binds: []string{"dbdata:/w"}}).State = "running"
	docker.Before("ContainerCommit", 1, func() { assert.Check(t, cmp.Equal(docker.FindContainer("writer").State, "paused")) })
	_, err := takeTogether(t.Context(), docker, "web", "db")
	assert.NilError(t, err)
	assert.Assert(t, runs(docker), docker.World())
}

// If somebody lets one of them run, all are read and committed again.
func TestAllAreReadAgainIfOneDidNotStandStill(t *testing.T) {
	docker := twoContainers(t)
	docker.Before("ContainerCommit", 0, func() {
		docker.By("db", false, true)
		docker.FindVolume("dbdata").Content = "two"
	})
	created, err := takeTogether(t.Context(), docker, "web", "db")
	assert.NilError(t, err)
	assert.Equal(t, docker.Count("ContainerCommit"), 4)
	assert.Assert(t, slices.Contains(docker.Service.Archives[string(created[1].ID)], "two"))
	assert.Assert(t, !created[0].Incomplete && !created[1].Incomplete)
	for _, img := range docker.Images {
		assert.Assert(t, len(img.Tags) > 0, docker.World())
	}
}

// Whichever call fails, there are all snapshots or none, and everything runs.
func TestSnapshotsTakenTogetherAreAllOrNone(t *testing.T) {
	for _, names := range [][]string{{"web", "db"}, {"plain", "web"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			operate := func(ctx context.Context, docker *enginetest.Docker) error {
				_, err := takeTogether(ctx, docker, names...)
				return err
			}
			enginetest.EachFault(t, twoContainers, operate, func(t *testing.T, o enginetest.Outcome) {
				if o.Kind == enginetest.FaultRefuse && o.Hit("ContainerUnpause") {
					assert.ErrorContains(t, o.Err, "is still paused, thaw it with docker unpause")
					return
				}
				assert.Assert(t, runs(o.Docker), o.After)
				if o.Err == nil {
					assert.Equal(t, strings.Count(o.After, ":2026"), len(names), o.After)
					return
				}
				assert.Equal(t, strings.Count(o.After, ":2026"), 0, o.After)
				refused := o.Kind == enginetest.FaultRefuse
				assert.Assert(t, len(o.Docker.Service.Archives) == 0 || refused && o.Hit("remove archives"), o.After)
				assert.Assert(t, !strings.Contains(o.After, "untagged") || refused && o.Hit("ImageRemove"), o.After)
			})
		})
	}
}

// Locks are taken before anything else is started, so who waits for one holds up nobody who waits
// for readers. The last one says who is frozen.
func TestSeveralContainersAreLockedBeforeAnyIsRead(t *testing.T) {
	docker := twoContainers(t)
	ids := []string{docker.FindContainer("web").ID, docker.FindContainer("db").ID}
	slices.Sort(ids)
	_, err := takeTogether(t.Context(), docker, "web", "db")
	assert.NilError(t, err)
	var launched []string
	for _, call := range docker.Calls {
		if name, ok := strings.CutPrefix(call, "launch "); ok {
			launched = append(launched, name)
		}
	}
	assert.DeepEqual(t, launched, []string{volumebackup.LockName(ids[0]), volumebackup.LockName(ids[1]), "", ""})

	for _, held := range ids {
		docker := twoContainers(t)
		docker.Service.Worker(volumebackup.LockName(held), map[string]string{volumebackup.LabelPurpose: "other", labels.Prefix + "worker.frozen": "null"}, nil, true)
		before := docker.World()
		_, err := takeTogether(t.Context(), docker, "web", "db")
		locked, ok := errors.AsType[*volumebackup.LockedError](err)
		assert.Assert(t, ok, "%v", err)
		assert.Equal(t, locked.Holder, volumebackup.LockName(held))
		assert.Equal(t, docker.World(), before)
	}
}

func TestAContainerIsCapturedOnce(t *testing.T) {
	docker := twoContainers(t)
	_, err := takeTogether(t.Context(), docker, "web", docker.FindContainer("web").ID)
	assert.ErrorContains(t, err, "container web is named twice")
}

// The hooks of all run around the freeze of all, those of the first container first and last. What
// comes with a snapshot is stored with that one only.
func TestWhatIsAskedOfOneSnapshotIsDoneForThatOne(t *testing.T) {
	docker := enginetest.New()
	for _, name := range []string{"web", "db"} {
		docker.Create(t, name, &container.Config{Labels: map[string]string{
			labels.KeyPolicyPre: `["pre", "` + name + `"]`, labels.KeyPolicyPost: `["post", "` + name + `"]`,
		}}, &container.HostConfig{}).State = "running"
	}
	cr := capturerOf(docker)
	when, err := cr.NewRequest(2)
	assert.NilError(t, err)
	created, err := cr.TakeWithin(t.Context(), when, []Options{
		{Container: "web", Name: "before"},
		{Container: "db", Attachments: []Attachment{{Name: "note", Content: strings.NewReader("text")}}},
	}, nil)
	assert.NilError(t, err)
	assert.Assert(t, runs(docker), docker.World())
	var told []string
	execs := 0
	for _, call := range docker.Calls {
		switch word, _, _ := strings.Cut(call, " "); word {
		case "ContainerExecAttach":
			told = append(told, docker.Execs[execs].Command)
			execs++
		case "ContainerPause", "ContainerUnpause", "ContainerCommit":
			told = append(told, word)
		}
	}
	assert.DeepEqual(t, told, []string{
		"pre web", "pre db", "ContainerPause", "ContainerPause", "ContainerCommit", "ContainerCommit", "ContainerUnpause", "ContainerUnpause", "post db", "post web",
	})
	assert.Equal(t, created[0].Name+created[1].Name, "before")
	assert.Equal(t, len(created[0].Attachments), 0)
	assert.Equal(t, created[0].Store, "") // it has nothing there
	assert.Equal(t, created[1].Attachments[0].Name, "note")
	assert.DeepEqual(t, docker.Service.Attached, map[string]map[string]string{string(created[1].ID): {"note": "text"}})
}
