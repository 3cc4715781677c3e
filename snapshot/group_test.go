package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// groupVolumes are the volumes of [withGroup].
var groupVolumes = []string{"shared", "dbdata", "webdata", "jobdata"}

// withGroup is an engine with three containers: db; web, which is in the network of db, and shares a volume
// with it; and job, which is stopped. There is a snapshot of each, named one, all of one moment. Now all are at
// two.
func withGroup(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	db := docker.Create(t, "db", &container.Config{}, &container.HostConfig{
		Binds: []string{"shared:/s", "dbdata:/d"}, RestartPolicy: container.RestartPolicy{Name: "always"},
	})
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{
		Binds: []string{"shared:/s", "webdata:/d"}, NetworkMode: container.NetworkMode("container:" + db.ID),
	})
	docker.Create(t, "job", &container.Config{}, &container.HostConfig{Binds: []string{"jobdata:/d"}})
	for _, name := range []string{"db", "web"} {
		assert.NilError(t, docker.ContainerStart(t.Context(), name, container.StartOptions{}))
	}
	setGroup(docker, "one")
	captureGroup(t, docker, "db", "web", "job")
	setGroup(docker, "two")
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

// setGroup changes all files and volumes.
func setGroup(docker *enginetest.Docker, text string) {
	for _, name := range []string{"db", "web", "job"} {
		docker.FindContainer(name).Files = text
	}
	for _, name := range groupVolumes {
		docker.FindVolume(name).Content = text
	}
}

// captureGroup takes snapshots named one, all of one moment.
func captureGroup(t *testing.T, docker *enginetest.Docker, names ...string) {
	t.Helper()
	_, err := createTogether(t.Context(), docker, "one", names...)
	assert.NilError(t, err)
}

func createTogether(ctx context.Context, docker *enginetest.Docker, name string, containers ...string) ([]capture.Created, error) {
	var all []capture.Options
	for _, container := range containers {
		all = append(all, capture.Options{Container: container, Name: name})
	}
	return engineOf(docker).CreateTogether(ctx, all, nil)
}

func TestSnapshotsTakenTogetherAreAGroup(t *testing.T) {
	docker := withGroup(t)
	docker.Randomness = 50
	docker.Clock = docker.Clock.Add(-time.Hour) // then they get other IDs than they were begun with
	for group, want := range map[string]string{"": "", "mine": "mine"} {
		all := []capture.Options{{Container: "web", Group: group}, {Container: "db", Group: group}}
		made, err := engineOf(docker).CreateTogether(t.Context(), all, nil)
		assert.NilError(t, err)
		for i, s := range made {
			assert.Equal(t, s.Container.Name, all[i].Container)
			assert.Equal(t, s.Group, cmp.Or(want, string(made[0].ID)))
			assert.Equal(t, s.Created, made[0].Created)
		}
	}
	before := docker.World()
	for _, names := range [][]string{{"db", "nobody"}, {"db", "db"}, {"db", ""}} {
		_, err := createTogether(t.Context(), docker, "", names...)
		assert.Assert(t, err != nil, names)
		assert.Equal(t, docker.World(), before)
	}
}

// What an interrupted snapshot of any of them has left frozen is thawed first.
func TestFrozenContainersAreThawedBeforeTheyAreCapturedTogether(t *testing.T) {
	docker := withGroup(t)
	docker.DieAt = "ContainerCommit"
	_, _ = createTogether(t.Context(), docker, "", "web", "db")
	assert.Equal(t, docker.FindContainer("web").State+" "+docker.FindContainer("db").State, "paused paused")
	docker.DieAt, docker.Dead = "", false
	docker.ClientDies()
	docker.Wait(time.Minute / 2)
	docker.Randomness = 50
	_, err := createTogether(t.Context(), docker, "", "job", "db", "web")
	assert.NilError(t, err, docker.World())
	assert.Equal(t, docker.FindContainer("web").State+" "+docker.FindContainer("db").State, "running running")
}

// replaceGroup restores the snapshots one of some containers in place.
func replaceGroup(ctx context.Context, e *Engine, change func(*replace.Options), names ...string) ([]replace.Result, error) {
	var all []replace.Options
	for _, name := range names {
		o := replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: name + ":one", Waiting: runconfig.Waiting{Wait: true}}}
		change(&o)
		all = append(all, o)
	}
	return e.replace.Replace(ctx, all, nil)
}

func asItIs(*replace.Options) {}

// picture says what a container is, so that it can be compared.
func picture(docker *enginetest.Docker, name string) string {
	c := docker.FindContainer(name)
	if c == nil {
		return name + ": gone"
	}
	return fmt.Sprintf("%s: %s %s %s %s %s", name, c.ID[:12], c.State, c.Files, c.Host.RestartPolicy.Name, c.Host.NetworkMode)
}

func TestContainersAreRestoredTogether(t *testing.T) {
	for _, names := range [][]string{{"db", "web", "job"}, {"job", "web", "db"}, {"web", "db"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			docker := withGroup(t)
			old := map[string]string{}
			for _, name := range names {
				old[name] = docker.FindContainer(name).ID
			}
			done, err := replaceGroup(t.Context(), engineOf(docker), asItIs, names...)
			assert.NilError(t, err)
			for i, name := range names {
				c := docker.FindContainer(name)
				assert.Equal(t, done[i].Name, name)
				assert.Equal(t, done[i].ContainerID, c.ID)
				assert.Assert(t, c.ID != old[name] && docker.FindContainer(old[name]) == nil)
				assert.Equal(t, c.Files, "one")
				assert.Equal(t, done[i].Safety.Container.ID, old[name])
				assert.Equal(t, done[i].Safety.Created, done[0].Safety.Created)
			}
			db, web := docker.FindContainer("db"), docker.FindContainer("web")
			assert.Equal(t, string(web.Host.NetworkMode), "container:"+db.ID)
			assert.Equal(t, db.State+" "+web.State, "running running")
			assert.Equal(t, docker.Count("apply shared"), 2) // the volume that they share is written once
			for _, name := range groupVolumes {
				if name != "jobdata" || len(names) == 3 {
					assert.Equal(t, docker.FindVolume(name).Content, "one")
				}
			}
			assertOrder(t, docker, "ContainerStop "+old["web"], "ContainerStop "+old["db"], "ContainerStart "+db.ID, "ContainerStart "+web.ID, "ContainerRemove "+old["web"], "ContainerRemove "+old["db"])
			assert.Assert(t, !strings.Contains(docker.World(), "container cua-"), docker.World())
		})
	}
}

// assertOrder checks that calls were made in that order.
func assertOrder(t *testing.T, docker *enginetest.Docker, calls ...string) {
	t.Helper()
	rest := docker.Calls
	for _, call := range calls {
		at := slices.Index(rest, call)
		assert.Assert(t, at >= 0, "%s comes too late: %v", call, docker.Calls)
		rest = rest[at+1:]
	}
}

// Whatever goes wrong with whichever call, all containers are restored, or all are as they were, if need be after
// one recovery; and nothing is left behind.
func TestContainersAreRestoredTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	remove := func(t *testing.T, docker *enginetest.Docker, name string) {
		t.Helper()
		assert.NilError(t, docker.ContainerRemove(t.Context(), name, container.RemoveOptions{Force: true}))
	}
	// Being cancelled ends as being refused does: what is restored alone shows that, and these scenes take long.
	every := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultDie}
	worst := []enginetest.FaultKind{enginetest.FaultDie}
	for name, scene := range map[string]struct {
		change func(*testing.T, *enginetest.Docker)
		names  []string
		kinds  []enginetest.FaultKind
	}{
		"three":              {func(*testing.T, *enginetest.Docker) {}, []string{"db", "web", "job"}, every},
		"two, one is paused": {func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("web").State = "paused" }, []string{"web", "db"}, worst},
		"three, one is gone with its volume": {func(t *testing.T, docker *enginetest.Docker) {
			remove(t, docker, "job")
			docker.Volumes = slices.DeleteFunc(docker.Volumes, func(v *enginetest.FakeVolume) bool { return v.Name == "jobdata" })
		}, []string{"job", "db", "web"}, worst},
		"two that are gone":       {func(t *testing.T, docker *enginetest.Docker) { remove(t, docker, "web"); remove(t, docker, "db") }, []string{"web", "db"}, worst},
		"two, one removes itself": {func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("web").Host.AutoRemove = true }, []string{"db", "web"}, worst},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before []string
			prepare := func(t *testing.T) *enginetest.Docker {
				t.Helper()
				docker := withGroup(t)
				scene.change(t, docker)
				before = nil
				for _, name := range scene.names {
					before = append(before, picture(docker, name))
				}
				return docker
			}
			operate := func(ctx context.Context, e *Engine) error {
				_, err := replaceGroup(ctx, e, asItIs, scene.names...)
				return err
			}
			withFaults(t, scene.kinds, prepare, operate, func(t *testing.T, o enginetest.Outcome) { checkGroup(t, o, scene.names, before) })
		})
	}
}

// checkGroup checks that after a fault, and one recovery, either everything is as it was captured, or as it was.
func checkGroup(t *testing.T, o enginetest.Outcome, names, before []string) {
	t.Helper()
	docker := o.Docker
	if o.Kind == enginetest.FaultRefuse && o.Hit("ContainerUnpause") { // who is frozen for a safety snapshot
		assert.ErrorContains(t, o.Err, "is still paused, thaw it with docker unpause")
		return
	}
	docker.ClientDies()
	docker.Wait(time.Minute / 2) // what was made and never ran counts as dead
	_, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err, "%v", o.Err)
	world := docker.World()
	for line := range strings.Lines(world) {
		assert.Assert(t, !strings.Contains(line, "-replaced-") && !strings.HasPrefix(line, "container cua-"), "%s", world)
	}
	var now []string
	restored := 0
	for _, name := range names {
		now = append(now, picture(docker, name))
		if c := docker.FindContainer(name); c != nil && c.Files == "one" {
			restored++
		}
	}
	if restored > 0 {
		assert.Equal(t, restored, len(names), world)
		db := docker.FindContainer("db")
		assert.Equal(t, string(docker.FindContainer("web").Host.NetworkMode), "container:"+db.ID)
		assert.Equal(t, db.State+" "+docker.FindContainer("web").State, "running running")
		assertContents(t, docker, names, "one")
		return
	}
	assert.Assert(t, o.Err != nil || o.Kind == enginetest.FaultDie)
	assertFormer(t, docker, now, before)
	assertContents(t, docker, names, "two")
}

// assertFormer checks that the containers are as they were. One that removes itself has another ID.
func assertFormer(t *testing.T, docker *enginetest.Docker, now, before []string) {
	t.Helper()
	for i := range before {
		is, was := strings.Fields(now[i]), strings.Fields(before[i])
		if c := docker.FindContainer(strings.TrimSuffix(is[0], ":")); c != nil && c.Host.AutoRemove {
			is[1], was[1] = "", ""
		}
		assert.DeepEqual(t, is, was)
	}
}

// assertContents checks what the volumes of the containers hold. One that was missing is missing again.
func assertContents(t *testing.T, docker *enginetest.Docker, names []string, want string) {
	t.Helper()
	for _, name := range groupVolumes {
		if name == "jobdata" && !slices.Contains(names, "job") {
			continue
		}
		if v := docker.FindVolume(name); v != nil {
			assert.Equal(t, v.Content, want, docker.World())
		}
	}
}

// What is restored to a volume that several containers mount has to be the same.
func TestSnapshotsOfDifferentContentsAreNotRestoredTogether(t *testing.T) {
	docker := withGroup(t)
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "later"})
	docker.Randomness += 50
	before := docker.World()
	all := []replace.Options{
		{RestoreOptions: runconfig.RestoreOptions{Snapshot: "db:one"}}, {RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:later"}},
	}
	_, err := engineOf(docker).replace.Replace(t.Context(), all, nil)
	problems, ok := errors.AsType[*plan.ProblemsError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Equal(t, len(problems.Problems), 1)
	assert.Equal(t, problems.Problems[0].Kind, plan.ProblemContents)
	assert.ErrorContains(t, err, "hold different contents of volume shared")
	assert.Equal(t, docker.World(), before)
}

// Options that concern all containers are the same for all, and no container is named twice.
func TestWhatCannotBeRestoredTogether(t *testing.T) {
	docker := withGroup(t)
	rp := engineOf(docker).replace
	one := replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "db:one"}}
	other := one
	other.NoSafety = true
	for want, all := range map[string][]replace.Options{
		"no snapshot to restore":      {},
		"restored in the same way":    {one, other},
		"container db is named twice": {one, one},
	} {
		_, err := rp.Replace(t.Context(), all, nil)
		assert.ErrorContains(t, err, want)
	}
}

// A container outside that needs one of them is in the way, one of them is not. A dry run says so, and what would be done.
func TestADryRunOfAGroup(t *testing.T) {
	docker := withGroup(t)
	before := docker.World()
	dry := func(o *replace.Options) { o.DryRun = true }
	planned, err := replaceGroup(t.Context(), engineOf(docker), dry, "web", "db")
	assert.NilError(t, err)
	assert.Assert(t, strings.Contains(planned[1].Plan.String(), "restore volume shared"))
	assert.Assert(t, !strings.Contains(planned[0].Plan.String(), "shared"))
	_, err = replaceGroup(t.Context(), engineOf(docker), dry, "db")
	assert.ErrorContains(t, err, "container web uses the network namespace of db, which will be replaced")
	assert.Equal(t, docker.World(), before)
}

// A new container that was at work for long after the interruption keeps what it has written, and so the others
// stay as well. One that was not started yet is.
func TestRecoverFinishesAGroupThatHasGoneOn(t *testing.T) {
	for name, moment := range map[string]struct {
		call string
		skip int
	}{"one has started": {"ContainerStart ", 1}, "all have": {"held", 3}} {
		t.Run(name, func(t *testing.T) {
			docker := withGroup(t)
			old := docker.FindContainer("db").ID
			docker.DieAt, docker.DieSkips = moment.call, moment.skip
			_, _ = replaceGroup(t.Context(), engineOf(docker), asItIs, "db", "web", "job")
			assert.Assert(t, docker.Dead)
			docker.DieAt, docker.Dead = "", false
			docker.ClientDies()
			assert.Assert(t, docker.FindContainer("db").ID != old)
			docker.FindVolume("dbdata").Content = "three"
			docker.Clock = docker.Clock.Add(time.Hour)
			done, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			assert.Assert(t, slices.ContainsFunc(done, func(r replace.Recovery) bool { return strings.Count(r.Text, "was completed") == 3 }), "%v", done)
			assert.Equal(t, docker.FindVolume("dbdata").Content, "three")
			assert.Equal(t, docker.FindContainer("db").State+" "+docker.FindContainer("web").State, "running running")
			assert.Assert(t, docker.FindContainer(old) == nil)
			assert.Assert(t, !strings.Contains(docker.World(), "container cua-"), docker.World())
		})
	}
}

// Whoever wants one of the containers finds the operation that was interrupted by any of their names.
func TestAnyMemberLeadsToTheJournal(t *testing.T) {
	for _, name := range []string{"db", "web", "job"} {
		t.Run(name, func(t *testing.T) {
			docker := withGroup(t)
			docker.DieAt = "ContainerCreate web"
			_, _ = replaceGroup(t.Context(), engineOf(docker), asItIs, "db", "web", "job")
			docker.DieAt, docker.Dead = "", false
			docker.ClientDies()
			assert.NilError(t, engineOf(docker).Settle(t.Context(), name, nil))
			assertContents(t, docker, []string{"db", "web", "job"}, "two")
			assert.Equal(t, docker.FindContainer("db").State+" "+docker.FindContainer("web").State+" "+docker.FindContainer("job").State, "running running created")
		})
	}
}

// Of the safety snapshots that were taken, those go again whose containers are back.
func TestSafetySnapshotsOfAGroupGoWithTheRollback(t *testing.T) {
	docker := withGroup(t)
	docker.Refused = []string{"ContainerCreate web"}
	before := tagsOf(docker.World())
	_, err := replaceGroup(t.Context(), engineOf(docker), asItIs, "db", "web", "job")
	assert.ErrorContains(t, err, "injected")
	assert.Equal(t, strings.Count(err.Error(), "everything was put back: container "), 3)
	assert.Equal(t, tagsOf(docker.World()), before)
	list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(list), 3)
}

// The error names each network of a Compose project that is down once, with the project.
func TestNetworksOfAProjectThatIsDown(t *testing.T) {
	docker := enginetest.New()
	docker.Networks["shop_front"] = docker.NewID()
	for i, name := range []string{"shop-web-1", "shop-db-1"} {
		docker.Create(t, name, &container.Config{Labels: map[string]string{"com.docker.compose.project": "shop"}}, &container.HostConfig{NetworkMode: "shop_front"})
		docker.Randomness = byte(10 * i)
		snapshotOf(t, docker, capture.Options{Container: name, Name: "one"})
		assert.NilError(t, docker.ContainerRemove(t.Context(), name, container.RemoveOptions{Force: true}))
	}
	delete(docker.Networks, "shop_front")
	all := []replace.Options{replaceOptions(), replaceOptions()}
	all[0].Snapshot, all[1].Snapshot = "shop-web-1:one", "shop-db-1:one"
	_, err := engineOf(docker).ReplaceTogether(t.Context(), all, nil)
	problems, ok := errors.AsType[*plan.ProblemsError](err)
	assert.Assert(t, ok, "%v", err)
	assert.DeepEqual(t, problems.Problems, []plan.Problem{
		{Kind: plan.ProblemNoProject, Subject: "shop_front", Text: "network shop_front of Compose project shop does not exist"},
	})
}
