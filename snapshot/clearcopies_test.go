package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/pending"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// A restore that was killed leaves a dead worker that says which volumes it was
// filling. Those that a copy mounts are the copy's; a worker that lives is let be.
func TestTheNextRestoreClearsWhatAKilledOneLeft(t *testing.T) {
	docker := enginetest.New()
	for name, operation := range map[string]string{"half": "one", "theirs": "", "whole": "one", "going": "two", "kept": "three"} {
		_, err := docker.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: map[string]string{labels.KeyOperation: operation}})
		assert.NilError(t, err)
	}
	docker.FindVolume("theirs").Labels = nil
	docker.Create(t, "copy", &container.Config{}, &container.HostConfig{Binds: []string{"whole:/data"}})
	worker := func(name, state, made string) *enginetest.FakeContainer {
		journal := map[string]string{volumebackup.LabelPurpose: "restore", pending.LabelMade: made, "cua.snapshot.worker.frozen": "null"}
		maps.Copy(journal, volumebackup.JournalLabels("v1"))
		w := docker.Create(t, "cua-snapshot-"+name, &container.Config{Image: enginetest.WorkerImage, Labels: journal}, &container.HostConfig{})
		w.State = state
		return w
	}
	worker("dead", "exited", `{"operation": "one", "volumes": ["half", "theirs", "whole", "gone"]}`)
	worker("alive", "running", `{"operation": "two", "volumes": ["going"]}`)
	settled := worker("settled", "exited", `{"operation": "three", "volumes": ["kept"]}`) // its copy was made, and removed since
	settled.Name = volumebackup.SettledName(settled.ID)

	engine := engineOf(docker)
	engine.copies.ClearCopies(t.Context(), func(event plan.Event) { t.Error(event.Text) })
	for name, stays := range map[string]bool{"half": false, "theirs": true, "whole": true, "going": true, "kept": true} {
		_, err := docker.VolumeInspect(t.Context(), name)
		assert.Equal(t, err == nil, stays, name)
	}
	assert.Assert(t, docker.FindContainer("cua-snapshot-dead") == nil)
	assert.Assert(t, docker.FindContainer("cua-snapshot-alive") != nil)
}

// A copy that was to be started is not left behind unstarted. What only has the label
// from its image, and what may be about to start, is let be.
func TestCopiesThatWereNeverStartedAreRemoved(t *testing.T) {
	docker := enginetest.New()
	mark := map[string]string{labels.KeyOperation: "one"}
	docker.AddImage("plain:latest", &container.Config{Cmd: []string{"plain"}})
	docker.AddImage("marked:latest", &container.Config{Cmd: []string{"marked"}, Labels: mark})
	create := func(name, image, state string, own map[string]string) {
		docker.Create(t, name, &container.Config{Image: image, Labels: own}, &container.HostConfig{}).State = state
	}
	create("half-made", "plain", "created", mark)
	create("started", "plain", "exited", mark)
	create("not-ours", "plain", "created", nil)
	create("of-a-marked-image", "marked", "created", nil)
	docker.Clock = docker.Clock.Add(copies.UnfinishedAge)
	create("young", "plain", "created", mark)

	done, err := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, err)
	assert.Equal(t, len(done), 1)
	assert.Equal(t, done[0].Container, "half-made")
	for name, stays := range map[string]bool{"half-made": false, "started": true, "not-ours": true, "of-a-marked-image": true, "young": true} {
		assert.Equal(t, docker.FindContainer(name) != nil, stays, name)
	}
}

// A worker may be dead although its client is about to say that the restore is done. Whenever that client goes on while another
// one clears up, there are either all copies, or the restore fails and nothing is left.
func TestARestoreGoesOnWhileAnotherClientClearsUp(t *testing.T) {
	always, never := runconfig.StartAlways, runconfig.StartNever
	for _, going := range []goingRestore{
		{start: always, waitsAt: "ContainerStart"},
		{start: always, waitsAt: "ContainerRename"},
		{start: never, waitsAt: "ContainerRename"}, // it gets its name
		{start: never, waitsAt: "ContainerRename", skips: 1},
		{start: always, forks: 2, waitsAt: "ContainerRename"},
		{start: never, forks: 2, waitsAt: "ContainerRename", skips: 2},
	} {
		for _, killed := range [][]int{{0}, {1}, {0, 1}} {
			t.Run(fmt.Sprintf("%+v, workers %v killed", going, killed), func(t *testing.T) {
				for n := 0; going.on(t, killed, n); n++ {
					assert.Assert(t, n < 1000)
				}
			})
		}
	}
}

// goingRestore is a restore that waits before a call when everything is made. Without another word that call settles the first worker.
type goingRestore struct {
	start   runconfig.Start
	forks   int // 0: it is no fork
	waitsAt string
	skips   int // so many of these calls come before
}

// on has the restore wait, its workers be killed, and another client clear up. Before call n of that, counted from 0, the restore
// goes on to its end. It returns false if there are fewer calls.
func (g goingRestore) on(t *testing.T, killed []int, n int) (reached bool) {
	t.Helper()
	docker := withAnonymous(t)
	before := docker.World()
	names := []string{"web-1", "web-2"}[:max(g.forks, 1)]
	waits, goesOn, done := make(chan bool), make(chan bool), make(chan error, 1)
	docker.Before(g.waitsAt, g.skips, func() {
		waits <- true
		<-goesOn
	})
	go func() {
		done <- restoreOrFork(t.Context(), engineOf(docker), g.start, g.forks)
	}()
	<-waits
	docker.Wait(2 * copies.UnfinishedAge)
	endWorkers(docker, killed)
	var err error
	finish := func() {
		close(goesOn)
		err = <-done
	}
	docker.Before("", n, func() {
		reached = true
		finish()
	})
	engineOf(docker).copies.ClearCopies(t.Context(), func(plan.Event) {})
	if docker.DoBefore = nil; !reached {
		finish()
	}
	docker.Wait(time.Hour)
	_, recoverErr := engineOf(docker).Recover(t.Context(), "", nil)
	assert.NilError(t, recoverErr)
	if err != nil {
		assert.Equal(t, docker.World(), before, "call %d: %v", n, err)
		return reached
	}
	assert.Assert(t, !strings.Contains(docker.World(), "container cua-"), docker.World())
	for _, name := range names {
		c := docker.FindContainer(name)
		assert.Assert(t, c != nil, "call %d: it says that it is done, and %s is gone", n, name)
		assert.Equal(t, c.State == "running", g.start == runconfig.StartAlways)
		for _, m := range c.Mounts {
			assert.Equal(t, docker.FindVolume(m.Name).Content, "one", "call %d", n)
		}
	}
	return reached
}

// restoreOrFork restores one copy, or so many.
func restoreOrFork(ctx context.Context, e *Engine, start runconfig.Start, count int) error {
	o := forks("web:one", count)
	if o.Start = start; count == 0 {
		o.Name = "web-1"
		_, err := e.Restore(ctx, o.RestoreOptions, nil)
		return err
	}
	_, err := e.Fork(ctx, o, nil)
	return err
}

// endWorkers kills workers of restores, by their numbers in the order in which they were made.
func endWorkers(docker *enginetest.Docker, numbers []int) {
	docker.Mu.Lock()
	defer docker.Mu.Unlock()
	at := 0
	for _, c := range docker.Containers {
		if c.Config.Labels[pending.LabelMade] == "" {
			continue
		}
		if slices.Contains(numbers, at) {
			c.End(docker.Clock)
		}
		at++
	}
}

// withKilled is an engine on which a restore was killed when everything ran, but was not settled.
func withKilled(count int) func(*testing.T) *enginetest.Docker {
	return func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := withAnonymous(t)
		docker.DieAt = "ContainerRename "
		err := restoreOrFork(t.Context(), engineOf(docker), runconfig.StartAlways, count)
		assert.ErrorContains(t, err, "nobody is there")
		docker.DieAt = ""
		docker.ClientDies()
		return docker
	}
}

func clearUp(ctx context.Context, e *Engine) error {
	e.copies.ClearCopies(ctx, func(plan.Event) {})
	return nil
}

// Copies that have run for long stay, also if the one who has cleared up after their fork was killed just now.
func TestCopiesThatHaveGoneOnStayWhoeverIsKilled(t *testing.T) {
	scene := func(t *testing.T) *enginetest.Docker {
		t.Helper()
		docker := withKilled(2)(t)
		docker.Wait(3 * time.Minute)
		return docker
	}
	withFaults(t, []enginetest.FaultKind{enginetest.FaultDie, enginetest.FaultRefuse}, scene, clearUp, func(t *testing.T, o enginetest.Outcome) {
		o.Docker.ClientDies()
		_, err := engineOf(o.Docker).Recover(t.Context(), "", nil)
		assert.NilError(t, err)
		for _, name := range []string{"web-1", "web-2"} {
			c := o.Docker.FindContainer(name)
			assert.Assert(t, c != nil && c.State == "running", name)
			for _, m := range c.Mounts {
				assert.Equal(t, o.Docker.FindVolume(m.Name).Content, "one")
			}
		}
		assert.Assert(t, !strings.Contains(o.Docker.World(), "container cua-"), o.Docker.World())
	})
}

// Who clears up may be killed, too: then the next one does it, and the one after that.
func TestClearingUpCanStopAnywhere(t *testing.T) {
	for _, count := range []int{0, 2} {
		withFaults(t, []enginetest.FaultKind{enginetest.FaultDie, enginetest.FaultRefuse}, withKilled(count), clearUp, func(t *testing.T, o enginetest.Outcome) {
			o.Docker.ClientDies()
			for n := range 3 { // killed again, after the heir; and then not
				o.Docker.ForgetCalls()
				o.Docker.Fault = enginetest.Fault{At: 8 + 3*n, Kind: enginetest.FaultDie}
				engineOf(o.Docker).copies.ClearCopies(t.Context(), func(plan.Event) {})
				o.Docker.Disarm()
				o.Docker.ClientDies()
			}
			o.Docker.Wait(time.Minute)
			_, err := engineOf(o.Docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			world := o.Docker.World()
			assert.Assert(t, !strings.Contains(world, "container cua-"), world)
			if count > 0 { // a single copy that runs stays
				assert.Assert(t, !strings.Contains(world, "container web-1") && !strings.Contains(world, "volume data-"), world)
			}
		})
	}
}
