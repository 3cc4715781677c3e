package snapshot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func forks(of string, count int) copies.ForkOptions {
	return copies.ForkOptions{RestoreOptions: runconfig.RestoreOptions{Snapshot: of}, Count: count}
}

func TestForkMakesCopiesThatShareNothing(t *testing.T) {
	docker := withAnonymous(t)
	made, err := engineOf(docker).Fork(t.Context(), forks("web:one", 3), nil)
	assert.NilError(t, err)
	assert.Equal(t, len(made), 3)
	mounted := map[string]bool{}
	for i, one := range made {
		assert.Equal(t, one.Name, fmt.Sprintf("web-%d", i+1))
		assert.Equal(t, docker.FindContainer(one.ContainerID).Name, one.Name)
		assert.Equal(t, docker.AnonymousOf(t, one.Name).Content, "one")
		for _, m := range docker.FindContainer(one.ContainerID).Mounts {
			assert.Assert(t, !mounted[m.Name], "two copies have volume %s", m.Name)
			mounted[m.Name] = true
			assert.Equal(t, docker.FindVolume(m.Name).Content, "one", m.Name)
		}
	}
	assert.Equal(t, len(mounted), 6)
	removed := engineOf(docker).RemoveCopies(t.Context(), []string{"web:one"}, true, nil)
	assert.NilError(t, removed[0].Err)
	assert.DeepEqual(t, removed[0].Containers, []string{"web-1", "web-2", "web-3"})
}

// The original keeps its port, although it does not run; of a container a snapshot is taken first.
func TestForkOfAContainerTakesASnapshotAndNoPort(t *testing.T) {
	docker := enginetest.New()
	docker.Create(t, "web", &container.Config{}, &container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostPort: "8080"}}}})
	o := forks("web", 2)
	o.Name, o.Start = "try", runconfig.StartAlways
	made, err := engineOf(docker).Fork(t.Context(), o, nil)
	assert.NilError(t, err)
	for _, name := range []string{"try-1", "try-2"} {
		assert.Equal(t, docker.FindContainer(name).State, "running")
		assert.Equal(t, docker.FindContainer(name).Host.PortBindings["80/tcp"][0].HostPort, "")
	}
	_, err = engineOf(docker).Resolve(t.Context(), string(made[0].Snapshot.ID))
	assert.NilError(t, err)

	docker.Create(t, "again-2", &container.Config{}, &container.HostConfig{})
	before := docker.World()
	o.Name = "again"
	docker.Randomness = 50
	_, err = engineOf(docker).Fork(t.Context(), o, nil)
	assert.ErrorContains(t, err, "a container named again-2 exists already")
	assert.Equal(t, docker.World(), before)

	for _, count := range []int{0, -1, copies.MaxForks + 1} {
		_, err = engineOf(docker).Fork(t.Context(), forks("web:latest", count), nil)
		assert.ErrorContains(t, err, "use a number from 1 to")
	}
}

// One copy that does not come up takes the others and the snapshot with it.
func TestForkMakesAllOrNone(t *testing.T) {
	docker := withAnonymous(t)
	before := docker.World()
	docker.OnStart = func(c *enginetest.FakeContainer) {
		if c.Name == "web-2" {
			c.End(docker.Clock)
			c.ExitCode = 3
		}
	}
	o := forks("web", 3)
	o.Wait, o.Start = true, runconfig.StartAlways
	_, err := engineOf(docker).Fork(t.Context(), o, nil)
	assert.ErrorContains(t, err, "container web-2 did not stay up")
	assert.Equal(t, docker.World(), before)
}

// Whatever goes wrong, there are all copies or none, and the original is as it was.
func TestForkIsWholeOrGoneWhateverGoesWrong(t *testing.T) {
	for _, start := range []runconfig.Start{runconfig.StartAlways, runconfig.StartNever} {
		operate := func(ctx context.Context, e *Engine) error {
			o := forks("web:one", 2)
			o.Start = start
			_, err := e.Fork(ctx, o, nil)
			return err
		}
		withEachFault(t, withAnonymous, operate, func(t *testing.T, o enginetest.Outcome) {
			if o.Err != nil {
				assert.Equal(t, o.After, o.Before)
			}
		})
		withFaults(t, []enginetest.FaultKind{enginetest.FaultDie}, withAnonymous, operate, func(t *testing.T, o enginetest.Outcome) {
			docker := o.Docker
			docker.ClientDies()
			docker.Wait(time.Minute + 30*time.Second)
			_, err := engineOf(docker).Recover(t.Context(), "", nil)
			assert.NilError(t, err)
			if docker.FindContainer("web-1") == nil {
				assert.Equal(t, docker.World(), o.Before)
				return
			}
			for _, name := range []string{"web-1", "web-2"} {
				assert.Equal(t, docker.AnonymousOf(t, name).Content, "one")
				assert.Equal(t, docker.FindContainer(name).State == "running", start == runconfig.StartAlways)
			}
			assert.Assert(t, !strings.Contains(docker.World(), "container cua-"), docker.World())
		})
	}
}

// A fork whose journal says that it is under way would lose its copies to the next command: so it has failed.
func TestAForkThatCannotBeSettledFails(t *testing.T) {
	docker := withAnonymous(t)
	before := docker.World()
	docker.Refused = []string{"ContainerRename"}
	o := forks("web:one", 2)
	o.Start = runconfig.StartAlways
	_, err := engineOf(docker).Fork(t.Context(), o, nil)
	assert.ErrorContains(t, err, "settle restore")
	assert.Equal(t, docker.World(), before)
}

// Nobody takes away what has run for long since its fork was killed: somebody may use it by now.
func TestCopiesOfAKilledForkThatHaveGoneOnStay(t *testing.T) {
	docker := withAnonymous(t)
	docker.DieAt, docker.DieSkips = "ContainerStart", 1 // one of the copies is started
	o := forks("web:one", 2)
	o.Start = runconfig.StartAlways
	_, err := engineOf(docker).Fork(t.Context(), o, nil)
	assert.Assert(t, err != nil)
	docker.DieAt = ""
	docker.ClientDies()
	docker.Wait(3 * time.Minute)
	engineOf(docker).copies.ClearCopies(t.Context(), func(event plan.Event) { t.Error(event.Text) })
	var kept []string
	for _, name := range []string{"web-1", "web-2"} {
		if c := docker.FindContainer(name); c != nil {
			assert.Equal(t, c.State, "running")
			kept = append(kept, name)
		}
	}
	assert.Equal(t, len(kept), 1, docker.World())
}
