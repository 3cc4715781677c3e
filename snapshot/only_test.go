package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// withTwoVolumes is an engine with a container web and its volumes data and logs, of which there is a snapshot
// web:one; now all are at two.
func withTwoVolumes(t *testing.T) *enginetest.Docker {
	t.Helper()
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{
		Binds: []string{"data:/data", "logs:/var/log"}, RestartPolicy: container.RestartPolicy{Name: "always"},
	})
	assert.NilError(t, docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
	set := func(text string) {
		web.Files, docker.FindVolume("data").Content, docker.FindVolume("logs").Content = text, text, text
	}
	set("one")
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})
	set("two")
	docker.Randomness = 100
	docker.ForgetCalls()
	return docker
}

// only is what restores parts of web:one in place.
func only(parts ...string) replace.Options {
	o := replaceOptions()
	o.Only = parts
	return o
}

// stateOfWeb says in one line what there is of web.
func stateOfWeb(docker *enginetest.Docker) string {
	web := docker.FindContainer("web")
	if web == nil {
		return "gone"
	}
	return strings.Join([]string{web.Files, docker.FindVolume("data").Content, docker.FindVolume("logs").Content, web.State, string(web.Host.RestartPolicy.Name)}, " ")
}

// assertNothingLeft checks that there is no worker, and no container that was put aside.
func assertNothingLeft(t *testing.T, docker *enginetest.Docker) {
	t.Helper()
	for line := range strings.Lines(docker.World()) {
		assert.Assert(t, !strings.Contains(line, "-replaced-") && !strings.HasPrefix(line, "container cua-"), "%s", docker.World())
	}
}

func TestOnlyVolumesGoBack(t *testing.T) {
	for _, word := range []string{"data", "/data", "/data/"} {
		docker := withTwoVolumes(t)
		old := docker.FindContainer("web").ID
		done, err := engineOf(docker).Replace(t.Context(), only(word), nil)
		assert.NilError(t, err)
		assert.Equal(t, docker.FindContainer("web").ID, old)
		assert.Equal(t, stateOfWeb(docker), "two one two running always")
		assert.Equal(t, done.ContainerID, old)
		assert.Assert(t, done.Keeps && done.Stops && done.Started && done.Saves)
		assert.Equal(t, len(done.Config), 0)
		assert.DeepEqual(t, done.Volumes[1], replace.VolumeChange{Volume: "logs", Kept: "it was not asked for"})
		assert.Equal(t, done.Safety.Trigger, labels.TriggerPreRestore)
		assert.Equal(t, done.Safety.Description, "before restoring "+word+" of one ("+string(done.Snapshot.ID)+")")
		assert.Assert(t, !strings.Contains(done.Plan.String(), "remove container") && !strings.Contains(done.Plan.String(), "create container"), done.Plan.String())
		assertNothingLeft(t, docker)

		back := only(word)
		back.Snapshot = string(done.Safety.ID)
		docker.Randomness += 50
		_, err = engineOf(docker).Replace(t.Context(), back, nil)
		assert.NilError(t, err)
		assert.Equal(t, docker.FindContainer("web").ID, old)
		assert.Equal(t, stateOfWeb(docker), "two two two running always")
	}
}

// What is chosen of a volume reaches the worker that writes it, with where the container has the volume.
func TestPathsAreChosenInTheVolumesThatGoBack(t *testing.T) {
	docker := withTwoVolumes(t)
	o := only("data")
	o.Paths = []string{"**/cont*"}
	done, err := engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	assert.DeepEqual(t, docker.Service.Applied["data"].Chosen, &volumebackup.Choice{Patterns: o.Paths, At: []string{"/data"}})
	assert.Equal(t, done.Safety.Description, "before restoring **/cont* in data of one ("+string(done.Snapshot.ID)+")")

	for _, parts := range [][]string{nil, {"data", replace.Rootfs}} {
		o := only(parts...)
		o.Paths = []string{"**/*.conf"}
		_, err := engineOf(docker).Replace(t.Context(), o, nil)
		assert.ErrorContains(t, err, "paths can only be chosen in volumes that go back alone")
	}
}

// A path that the snapshot does not have is refused before anything stops, also in a dry run.
func TestAPathThatMatchesNothingIsRefusedFirst(t *testing.T) {
	docker := withTwoVolumes(t)
	before := docker.World()
	for _, isDry := range []bool{false, true} {
		o := only("data")
		o.Paths, o.DryRun = []string{"/data/content", "/data/typo", "!/data/none"}, isDry
		_, err := engineOf(docker).Replace(t.Context(), o, nil)
		assert.ErrorContains(t, err, `"/data/typo" matches nothing in data of snapshot `)
		assert.Equal(t, docker.World(), before)
	}
	for _, call := range docker.Calls {
		assert.Assert(t, !strings.HasPrefix(call, "ContainerStop") && !strings.HasPrefix(call, "ContainerPause"), call)
	}

	o := only("data")
	o.Paths = []string{"/data/content"}
	done, err := engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
	o.Paths, o.Snapshot = []string{"/data/typo"}, string(done.Safety.ID) // the restore may have made it: going back removes it
	_, err = engineOf(docker).Replace(t.Context(), o, nil)
	assert.NilError(t, err)
}

// Whatever goes wrong with whichever call: the container is the same, and its volume is what it was or what was
// captured, if need be after one recovery.
func TestVolumesGoBackOrNothingDoes(t *testing.T) {
	t.Parallel()
	scenes := map[string]func(*testing.T, *enginetest.Docker){
		"running": func(*testing.T, *enginetest.Docker) {},
		"paused":  func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("web").State = "paused" },
		"stopped": func(_ *testing.T, docker *enginetest.Docker) { docker.FindContainer("web").State = "exited" },
		"no policy": func(_ *testing.T, docker *enginetest.Docker) {
			docker.FindContainer("web").Host.RestartPolicy = container.RestartPolicy{}
		},
		"beside another": func(t *testing.T, docker *enginetest.Docker) {
			runWith(t, docker, "reader", &container.HostConfig{Binds: []string{"data:/d"}})
		},
	}
	for name, change := range scenes {
		t.Run(name, func(t *testing.T) { goBackWithFaults(t, false, change) })
		if name != "no policy" {
			t.Run(name+", live", func(t *testing.T) { goBackWithFaults(t, true, change) })
		}
	}
}

// goBackWithFaults restores the volume data, and has every call fail once in every way.
func goBackWithFaults(t *testing.T, live bool, change func(*testing.T, *enginetest.Docker)) {
	t.Helper()
	t.Parallel()
	var old enginetest.FakeContainer
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := withTwoVolumes(t)
		change(t, docker)
		old = *docker.FindContainer("web")
		return docker
	}
	operate := func(ctx context.Context, e *Engine) error {
		options := only("data")
		options.StopOthers, options.Live = true, live
		_, err := e.Replace(ctx, options, nil)
		return err
	}
	kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultCancelBefore, enginetest.FaultCancelAfter, enginetest.FaultDie}
	withFaults(t, kinds, scene, operate, func(t *testing.T, o enginetest.Outcome) { checkOnly(t, o, old) })
}

// checkOnly checks that after a fault either only the volume data is as it was captured, or nothing is; and that there
// is a snapshot to take it back exactly if it is.
func checkOnly(t *testing.T, o enginetest.Outcome, old enginetest.FakeContainer) {
	t.Helper()
	docker := o.Docker
	docker.ClientDies()
	docker.Wait(time.Minute / 2) // what was made and never ran counts as dead
	_, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err, "%v", o.Err)
	assertNothingLeft(t, docker)
	web := docker.FindContainer("web")
	assert.Assert(t, web != nil && web.ID == old.ID, docker.World())
	if reader := docker.FindContainer("reader"); reader != nil {
		assert.Equal(t, reader.State, "running")
	}
	data := docker.FindVolume("data").Content
	assert.Assert(t, data == "one" || data == "two" && (o.Err != nil || o.Kind == enginetest.FaultDie), docker.World())
	assert.Equal(t, stateOfWeb(docker), strings.Join([]string{"two", data, "two", old.State, string(old.Host.RestartPolicy.Name)}, " "))
	list, err := engineOf(docker).List(t.Context(), catalog.ListOptions{}, nil)
	assert.NilError(t, err)
	assert.Equal(t, len(list), map[string]int{"one": 2, "two": 1}[data], docker.World())
}

// A container that is only frozen does not stop, and what somebody else does to it meanwhile is noticed.
func TestVolumesGoBackToAFrozenContainer(t *testing.T) {
	docker := withTwoVolumes(t)
	docker.FindContainer("web").Host.AutoRemove, docker.FindContainer("web").Host.RestartPolicy = true, container.RestartPolicy{}
	options := only("data")
	options.Live = true
	done, err := engineOf(docker).Replace(t.Context(), options, nil)
	assert.NilError(t, err)
	assert.Equal(t, stateOfWeb(docker), "two one two running ")
	assert.Assert(t, done.Keeps && done.Freezes && !done.Stops && !done.Started)
	assert.Equal(t, docker.Count("ContainerStop "+done.ContainerID)+docker.Count("ContainerStart "+done.ContainerID)+docker.Count("ContainerRename "+done.ContainerID), 0)
	assert.Equal(t, docker.Count("ContainerPause "+done.ContainerID), 1)

	for want, wrong := range map[string]replace.Options{
		"a container is only frozen if it is kept": {RestoreOptions: options.RestoreOptions, Live: true},
		"volumes alone go back only with a safety": {RestoreOptions: options.RestoreOptions, Only: options.Only, NoSafety: true},
	} {
		_, err := engineOf(docker).Replace(t.Context(), wrong, nil)
		assert.ErrorContains(t, err, want)
	}
}

// The root filesystem alone is a restore in place that leaves the volumes.
func TestOnlyTheRootFilesystemGoesBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		parts []string
		want  string
	}{
		"rootfs":              {[]string{replace.Rootfs}, "one two two running always"},
		"rootfs and a volume": {[]string{"/var/log", replace.Rootfs}, "one two one running always"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var old enginetest.FakeContainer
			scene := func(t *testing.T) *enginetest.Docker {
				t.Helper()
				docker := withTwoVolumes(t)
				old = *docker.FindContainer("web")
				return docker
			}
			operate := func(ctx context.Context, e *Engine) error {
				done, err := e.Replace(ctx, only(tc.parts...), nil)
				if err == nil {
					assert.Assert(t, !done.Keeps)
					assert.DeepEqual(t, done.Volumes[0], replace.VolumeChange{Volume: "data", Kept: "it was not asked for"})
				}
				return err
			}
			kinds := []enginetest.FaultKind{enginetest.FaultRefuse, enginetest.FaultLoseAnswer, enginetest.FaultDie}
			withFaults(t, kinds, scene, operate, func(t *testing.T, o enginetest.Outcome) {
				docker := o.Docker
				docker.ClientDies()
				docker.Wait(time.Minute / 2)
				_, err := engineOf(docker).Recover(t.Context(), "", nil)
				assert.NilError(t, err, "%v", o.Err)
				assertNothingLeft(t, docker)
				if docker.FindContainer("web").ID != old.ID {
					assert.Equal(t, stateOfWeb(docker), tc.want)
					return
				}
				assert.Assert(t, o.Err != nil || o.Kind == enginetest.FaultDie)
				assert.Equal(t, stateOfWeb(docker), "two two two running always")
			})
		})
	}
}

// A container that has been at work since an interruption keeps what it has written.
func TestAKeptContainerThatHasGoneOnStaysAsItIs(t *testing.T) {
	docker := withTwoVolumes(t)
	docker.DieAt = "held"
	docker.DieSkips = 1 // the last look before the point of no return
	_, _ = engineOf(docker).Replace(t.Context(), only("data"), nil)
	assert.Assert(t, docker.Dead)
	docker.DieAt, docker.Dead = "", false
	docker.ClientDies()
	assert.Equal(t, docker.FindContainer("web").State, "running")
	docker.FindVolume("data").Content = "three"
	docker.Clock = docker.Clock.Add(time.Hour)
	done, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.Assert(t, slices.ContainsFunc(done, func(r replace.Recovery) bool {
		return strings.HasPrefix(r.Text, "nothing was put back: container web")
	}), "%v", done)
	assert.Equal(t, stateOfWeb(docker), "two three two running always")
	assertNothingLeft(t, docker)
}

func TestWhatCannotGoBackAlone(t *testing.T) {
	docker := withTwoVolumes(t)
	before := docker.World()
	_, err := engineOf(docker).Replace(t.Context(), only("data", "cache"), nil)
	unknown, ok := errors.AsType[*replace.UnknownPartError](err)
	assert.Assert(t, ok, "%v", err)
	assert.DeepEqual(t, unknown.Parts, []string{"data (/data)", "logs (/var/log)", "rootfs"})
	assert.Equal(t, docker.World(), before)

	for want, change := range map[plan.ProblemKind]func(docker *enginetest.Docker){
		plan.ProblemStopRemoves: func(docker *enginetest.Docker) { docker.FindContainer("web").Host.AutoRemove = true },
		plan.ProblemNoOriginal: func(docker *enginetest.Docker) {
			assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
		},
		plan.ProblemVolumeInUse: func(docker *enginetest.Docker) {
			runWith(t, docker, "reader", &container.HostConfig{Binds: []string{"data:/d"}})
		},
		plan.ProblemNeedsRunning: func(docker *enginetest.Docker) {
			runWith(t, docker, "side", &container.HostConfig{NetworkMode: container.NetworkMode("container:" + docker.FindContainer("web").ID)})
		},
		plan.ProblemNotMounted: func(docker *enginetest.Docker) {
			assert.NilError(t, docker.ContainerRemove(t.Context(), "web", container.RemoveOptions{Force: true}))
			runWith(t, docker, "web", &container.HostConfig{Binds: []string{"logs:/var/log"}})
		},
	} {
		docker := withTwoVolumes(t)
		change(docker)
		before := docker.World()
		_, err := engineOf(docker).Replace(t.Context(), only("data"), nil)
		problems, ok := errors.AsType[*plan.ProblemsError](err)
		assert.Assert(t, ok, "%s: %v", want, err)
		assert.Equal(t, problems.Problems[0].Kind, want)
		assert.Equal(t, docker.World(), before)
	}
}

// runWith makes a container and starts it.
func runWith(t *testing.T, docker *enginetest.Docker, name string, host *container.HostConfig) {
	t.Helper()
	c := docker.Create(t, name, &container.Config{}, host)
	assert.NilError(t, docker.ContainerStart(t.Context(), c.ID, container.StartOptions{}))
}
