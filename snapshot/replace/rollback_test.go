package replace

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// interrupted is a world in which a restore in place of web has come as far as
// that the new container runs: what is left of it is the journal. reader was
// stopped for it.
func interrupted(t *testing.T, docker *enginetest.Docker) pending.Journal {
	t.Helper()
	web, reader := docker.Run(t, "web"), docker.Run(t, "reader")
	target := snapshotOf(t, docker, capture.Options{Container: "web", Name: "target"})
	docker.Randomness += 100
	safety := snapshotOf(t, docker, capture.Options{Container: "web"})
	old := web.Inspect(false)
	j := newJournal(&group{members: []*member{{Snapshot: target, Name: "web", Old: &old}}, others: []pending.Other{{ID: reader.ID, Name: "reader"}}}, []labels.ID{safety.ID})
	web.State, web.Name, reader.State = "exited", j.Members[0].Aside, "exited"
	made := docker.Create(t, "web", &container.Config{Labels: map[string]string{labels.KeyRestoredFrom: string(target.ID)}}, &container.HostConfig{})
	made.State = "running"
	return j
}

// journalOf is the journal of a restore in place of one container.
func journalOf(m *member, others ...pending.Other) pending.Journal {
	m.Snapshot.ID = cmp.Or(m.Snapshot.ID, "20260131-120001-000001")
	return newJournal(&group{shared: shared{noSafety: true}, members: []*member{m}, others: others}, []labels.ID{m.Snapshot.ID})
}

func TestUndoEndsTheSameWhateverGoesWrongOnTheWay(t *testing.T) {
	var j pending.Journal
	scene := func(t *testing.T) *enginetest.Docker {
		docker := enginetest.New()
		j = interrupted(t, docker)
		return docker
	}
	undo := func(ctx context.Context, docker *enginetest.Docker) error {
		_, err := replacerOf(docker).rollBackLater(j, nil).runAfterStop(ctx)
		return err
	}
	enginetest.EachFault(t, scene, undo, func(t *testing.T, o enginetest.Outcome) {
		if o.Err != nil { // and again, when the cause is gone
			assert.NilError(t, undo(t.Context(), o.Docker))
		}
		web := o.Docker.FindContainer("web")
		assert.Equal(t, web.ID, j.Members[0].Old)
		assert.Equal(t, web.State, "running")
		if o.Kind != enginetest.FaultRefuse || !o.Hit("ContainerStart "+j.Others[0].ID) { // which is told, no more
			assert.Equal(t, o.Docker.FindContainer("reader").State, "running")
		}
		assert.Equal(t, len(o.Docker.Containers), 2)
		assert.Assert(t, !o.Docker.StartedTwice || o.Hit("ContainerStart"))
	})
}

func TestUndoRemovesTheSafetySnapshotOnlyIfTheSameContainerIsBack(t *testing.T) {
	for _, removed := range []bool{false, true} {
		docker := enginetest.New()
		j := interrupted(t, docker)
		if removed {
			assert.NilError(t, docker.ContainerRemove(t.Context(), j.Members[0].Old, container.RemoveOptions{}))
		}
		text, err := rollBack(t, docker, j)
		assert.NilError(t, err)
		web := docker.FindContainer("web")
		assert.Equal(t, web.State, "running")
		assert.Equal(t, web.Files, "files of web")
		_, err = replacerOf(docker).catalog.Resolve(t.Context(), string(j.Members[0].Safety))
		if !removed {
			assert.Equal(t, web.ID, j.Members[0].Old)
			assert.Assert(t, err != nil)
			continue
		}
		assert.NilError(t, err)
		assert.Equal(t, web.Config.Labels[labels.KeyRestoredFrom], string(j.Members[0].Safety))
		assert.Assert(t, is.Contains(text, "which somebody had removed, was made again"))
		again, err := rollBack(t, docker, j)
		assert.NilError(t, err)
		assert.Equal(t, again, text)
		assert.Equal(t, docker.FindContainer("web").ID, web.ID)
	}
}

func TestUndoKeepsTheNewContainerIfNothingElseIsLeft(t *testing.T) {
	docker := enginetest.New()
	j := interrupted(t, docker)
	j.Members[0].Safety = ""
	assert.NilError(t, docker.ContainerRemove(t.Context(), j.Members[0].Old, container.RemoveOptions{}))
	made := docker.FindContainer("web").ID
	text, err := rollBack(t, docker, j)
	assert.NilError(t, err)
	assert.Assert(t, is.Contains(text, "stays"))
	assert.Equal(t, docker.FindContainer("web").ID, made)
	assert.Equal(t, docker.FindContainer("reader").State, "running")
}

func TestUndoThatFailsSaysWhatThereIs(t *testing.T) {
	docker := enginetest.New()
	j := interrupted(t, docker)
	docker.StartError = errors.New("port is already allocated")
	_, err := rollBack(t, docker, j)
	stuck, ok := errors.AsType[*UndoError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, stuck.Container, "web")
	assert.Equal(t, stuck.State, "Nothing was deleted. What there is now:\n"+
		"  - the container itself ("+j.Members[0].Old[:dockerop.ShortID]+") is named web and is stopped\n"+
		"  - container reader, which shares them, is named reader and is stopped\n"+
		"  - snapshot "+string(j.Members[0].Safety)+" holds what there was before")
	docker.StartError = nil
	_, err = rollBack(t, docker, j)
	assert.NilError(t, err)
	assert.Equal(t, docker.FindContainer("reader").State, "running")
}

// While the volumes are not back, nobody is to work with them.
func TestUndoThatFailsBeforeTheVolumesAreBackStartsNobody(t *testing.T) {
	docker := enginetest.New()
	j := interrupted(t, docker)
	j.Volumes, j.Members[0].Safety = []string{"data"}, "20260131-120000-0000ff"
	_, err := rollBack(t, docker, j)
	stuck, ok := errors.AsType[*UndoError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Assert(t, is.Contains(stuck.State, "named "+j.Members[0].Aside+" and is stopped"))
	assert.Assert(t, is.Contains(stuck.State, "its volumes may hold a mixture of what they held and of what was being restored: data"))
	assert.Assert(t, is.Contains(stuck.State, "there is no snapshot of what there was before"))
	assert.Equal(t, docker.FindContainer("reader").State, "exited")
}

// stoppingDocker has what is being stopped ended after some looks at it.
type stoppingDocker struct {
	*enginetest.Docker
	id    string
	looks int
}

func (d *stoppingDocker) ContainerInspectWithRaw(ctx context.Context, id string, size bool) (container.InspectResponse, []byte, error) {
	if id == d.id {
		if d.looks--; d.looks == 0 {
			_ = d.ContainerStop(ctx, id, container.StopOptions{})
		}
	}
	return d.Docker.ContainerInspectWithRaw(ctx, id, size)
}

func TestAwaitStop(t *testing.T) {
	for name, tc := range map[string]struct {
		web, reader string // their states
		aside       bool   // web has stepped aside
		policy      string // that web has, of one it had
		suspect     string // who may be being stopped
	}{
		"the first":                             {"running", "running", false, "", "reader"},
		"the second":                            {"running", "exited", false, "", "web"},
		"the second, whose policy is off":       {"running", "exited", false, "no", "web"},
		"the second is not to restart any more": {"running", "exited", false, "always", ""},
		"none any more":                         {"exited", "exited", false, "", ""},
		"none, one runs again":                  {"exited", "running", false, "", ""},
		"none, it has stepped aside":            {"running", "exited", true, "", ""},
		"none yet, it is paused":                {"paused", "exited", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			web, reader := docker.Run(t, "web"), docker.Run(t, "reader")
			if tc.policy != "" {
				web.Host.RestartPolicy.Name = "always"
			}
			old := web.Inspect(false)
			j := journalOf(&member{Name: "web", Old: &old}, pending.Other{ID: reader.ID, Name: "reader", Timeout: 10})
			web.State, reader.State, web.Host.RestartPolicy.Name = tc.web, tc.reader, container.RestartPolicyMode(tc.policy)
			if tc.aside {
				web.Name = j.Members[0].Aside
			}
			started := docker.Clock
			assert.NilError(t, replacerOf(docker).rollBackLater(j, nil).awaitStop(t.Context()))
			waited := docker.Clock.Sub(started)
			if tc.suspect == "" {
				assert.Equal(t, waited, time.Duration(0))
				return
			}
			assert.Assert(t, waited >= 12*time.Second, "%s", waited) // it was not being stopped

			watched := &stoppingDocker{docker, docker.FindContainer(tc.suspect).ID, 4}
			e := replacerThrough(docker, watched)
			started = docker.Clock
			assert.NilError(t, e.rollBackLater(j, nil).awaitStop(t.Context()))
			assert.Assert(t, docker.Clock.Sub(started) < 12*time.Second)
			assert.Equal(t, docker.FindContainer(tc.suspect).State, "exited")
		})
	}
}

func TestStopTimeout(t *testing.T) {
	seconds := func(n int) *container.Config { return &container.Config{StopTimeout: &n} }
	assert.Equal(t, runconfig.StopTimeout(container.InspectResponse{}), 10)
	assert.Equal(t, runconfig.StopTimeout(container.InspectResponse{Config: &container.Config{}}), 10)
	assert.Equal(t, runconfig.StopTimeout(container.InspectResponse{Config: seconds(3)}), 3)
	assert.Equal(t, runconfig.StopTimeout(container.InspectResponse{Config: seconds(0)}), 0)
	assert.Equal(t, runconfig.StopTimeout(container.InspectResponse{Config: seconds(-1)}), 10)
}

func TestOthersThatCannotBeStartedAreTold(t *testing.T) {
	docker := enginetest.New()
	a, b := docker.Run(t, "one"), docker.Run(t, "two")
	a.State, b.State = "exited", "paused"
	var got enginetest.Events
	others := []pending.Other{{ID: "gone", Name: "gone"}, {ID: b.ID, Name: "two", Paused: true}, {ID: a.ID, Name: "one", Paused: true}}
	assert.NilError(t, replacerOf(docker).startOthers(t.Context(), others, got.Progress))
	assert.Equal(t, len(got.Warnings()), 1)
	assert.Assert(t, is.Contains(got.Warnings()[0], "container gone, which was stopped for its volumes, was removed meanwhile"))
	assert.Equal(t, a.State, "paused")
	assert.Equal(t, b.State, "paused")
	a.State, docker.StartError = "exited", errors.New("its port is taken")
	err := replacerOf(docker).startOthers(t.Context(), others, got.Progress)
	assert.ErrorContains(t, err, "container one, which was stopped for its volumes, could not be started again: its port is taken")
}

func TestOthersAreInTheOrderInWhichTheyCanStart(t *testing.T) {
	others := []pending.Other{{ID: "3", Name: "c"}, {ID: "2", Name: "b"}, {ID: "4", Name: "d"}, {ID: "1", Name: "a"}}
	peers := map[string][]string{"3": {"2"}, "2": {"a", "outside"}, "4": {"4"}}
	var names []string
	for _, o := range inOrder(others, func(o, other pending.Other) bool { return other.IsOneOf(peers[o.ID]) }) {
		names = append(names, o.Name)
	}
	assert.Equal(t, strings.Join(names, " "), "a b c d")
}

func TestOnlyWhatRunsIsGoneWhenItStops(t *testing.T) {
	docker := enginetest.New()
	c := docker.Create(t, "once", &container.Config{}, &container.HostConfig{AutoRemove: true})
	for state, want := range map[string]bool{"created": false, "running": true, "paused": true, "dead": false} {
		c.State = state
		old := c.Inspect(false)
		m := &member{Old: &old}
		assert.Equal(t, m.entry().OneShot, want, state)
		m.unsaved(&group{members: []*member{m}, shared: shared{noSafety: true}})
		assert.Equal(t, len(m.problems) > 0, want, state)
	}
}

// What a start that has failed took away is there again for the next one, and a
// network that was made anew is not mistaken for the old one.
func TestReconnect(t *testing.T) {
	docker := enginetest.New()
	docker.Networks["n1"], docker.Networks["n2"], docker.Networks["n3"] = "id1", "id2", "id3"
	c := docker.Create(t, "web", &container.Config{}, &container.HostConfig{NetworkMode: "n1"})
	c.Endpoints = map[string]*network.EndpointSettings{
		"n1": {NetworkID: "id1", Aliases: []string{"alias", c.ID[:dockerop.ShortID]}},
		"n2": {NetworkID: "id2", IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: "10.0.0.2"}},
		"n3": {NetworkID: "id3"},
	}
	old := c.Inspect(false)
	j := (&member{Name: "web", Old: &old}).entry()
	delete(c.Endpoints, "n1")
	docker.Networks["n2"] = "another"
	delete(docker.Networks, "n3")
	err := replacerOf(docker).docker.Reconnect(t.Context(), c.Inspect(false), j.Endpoints)
	assert.ErrorContains(t, err, "network n3 of container web does not exist any more: create it again")
	assert.Equal(t, c.Endpoints["n1"].NetworkID, "id1")
	assert.DeepEqual(t, c.Endpoints["n1"].Aliases, []string{"alias"})
	assert.Equal(t, c.Endpoints["n2"].NetworkID, "another")
	assert.Equal(t, c.Endpoints["n2"].IPAMConfig.IPv4Address, "10.0.0.2")
}

func TestStandInFillsNoVolume(t *testing.T) {
	sp := &runconfig.Spec{Host: container.HostConfig{
		Binds:  []string{"a:/a", "b:/b:ro", "c:/c:nocopy", "/etc:/etc", "nocopy-d:/d", "e:/nocopy:z"},
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "d", Target: "/d"}, {Type: mount.TypeTmpfs, Target: "/e"}},
	}}
	host := sp.StandIn(nil)
	assert.DeepEqual(t, host.Binds, []string{"a:/a:nocopy", "b:/b:ro,nocopy", "c:/c:nocopy", "/etc:/etc", "nocopy-d:/d:nocopy", "e:/nocopy:z,nocopy"})
	assert.Assert(t, host.Mounts[0].VolumeOptions.NoCopy)
	assert.Assert(t, host.Mounts[1].VolumeOptions == nil)
	assert.Equal(t, sp.Host.Binds[0], "a:/a")
	assert.Assert(t, sp.Host.Mounts[0].VolumeOptions == nil)
}

// capturedWeb is a snapshot without a configuration.
func capturedWeb() catalog.Snapshot {
	var s catalog.Snapshot
	s.ID, s.Container.ID, s.Container.Name = "20260131-120001-000001", strings.Repeat("ab", 32), "web"
	return s
}

// Storage that a volume only pointed to may hold something, though its object is
// gone.
func TestStorageThatWasFoundIsSavedAndStays(t *testing.T) {
	archive := &labels.Archive{Entries: 2}
	s := capturedWeb()
	s.Mounts = []labels.Mount{
		{Type: "volume", Name: "nfs", Driver: "local", Options: map[string]string{"type": "nfs", "device": ":/export"}, Destination: "/nfs", Archive: archive},
		{Type: "volume", Name: "memory", Driver: "local", Options: map[string]string{"type": "tmpfs", "device": "tmpfs"}, Destination: "/memory", Archive: archive},
		{Type: "volume", Name: "plain", Driver: "local", Destination: "/plain", Archive: archive},
	}
	m := &member{Snapshot: s, Name: "web", Volumes: (&runconfig.Spec{}).PlaceVolumes(s, nil)}
	g := &group{members: []*member{m}}
	j := journalOf(m)
	assert.DeepEqual(t, j.Volumes, []string{"nfs"})
	assert.DeepEqual(t, j.Found, []string{"nfs"})
	assert.DeepEqual(t, j.Made, []string{"memory", "plain"})
	assert.Equal(t, len(lockOptions(j).Volumes), 0) // or the engine would make another of that name
	assert.Assert(t, m.saves(g))
	docker := enginetest.New()
	old := docker.Run(t, "web").Inspect(false)
	m.Old = &old
	m.unsaved(g)
	assert.Equal(t, len(m.problems), 1)
}

func TestPlanOfAreplacementNamesAllThatIsDone(t *testing.T) {
	s := capturedWeb()
	m := &member{
		Snapshot: s, Name: "web", Start: true, Pause: true, Spec: &runconfig.Spec{},
		mounts: []runconfig.PlacedVolume{
			{NewVolume: runconfig.NewVolume{Create: volume.CreateOptions{Name: "data"}, Archive: &labels.Archive{}}, Exists: true},
			{NewVolume: runconfig.NewVolume{Create: volume.CreateOptions{Name: "kept"}}, Exists: true},
		},
	}
	g := &group{members: []*member{m}}
	g.findProblems(nil)
	assert.Equal(t, g.steps(m).String(),
		"leave out kept (the snapshot does not hold its content; the volume is kept as it is)\n"+
			"create snapshot web (to go back to)\nrestore volume data\ncreate container web (from "+s.Ref()+")\nstart container web\npause container web\n")
	g.noSafety = true
	assert.Assert(t, !strings.Contains(g.steps(m).String(), "create snapshot"))
	g.noSafety, m.Volumes[0].Exists = false, false
	assert.Assert(t, !strings.Contains(g.steps(m).String(), "create snapshot"))
}
