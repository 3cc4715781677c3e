package snapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// clocks are the client's and the engine's, which go apart.
type clocks struct {
	docker *enginetest.Docker
	client time.Duration // ahead of the engine
}

// engine is one whose client has its own clock.
func (c *clocks) engine() *Engine {
	c.docker.Randomness += 10
	p := partsOf(c.docker)
	p.now = func() time.Time { return c.docker.Tick().Add(c.client) }
	return assemble(p)
}

// set moves the clocks of the client and of the engine.
func (c *clocks) set(client, engine time.Duration) {
	c.docker.Wait(engine)
	c.client += client - engine
}

const day = 24 * time.Hour

// eachShift runs a test for each way in which clocks are set while the program is not at work.
func eachShift(t *testing.T, test func(t *testing.T, client, engine time.Duration)) {
	t.Helper()
	for _, by := range []time.Duration{day, -day} {
		for name, shift := range map[string][2]time.Duration{"client": {by, 0}, "engine": {0, by}, "both": {by, by}} {
			t.Run(fmt.Sprint(name, " ", by), func(t *testing.T) { test(t, shift[0], shift[1]) })
		}
	}
}

// Whatever happens to clocks, snapshots are in the order in which they were taken: in lists, for latest, as parents and where a
// limit removes the oldest. Then the clocks are right again, and it goes on.
func TestClocksThatAreSetKeepTheOrder(t *testing.T) {
	eachShift(t, func(t *testing.T, client, engine time.Duration) {
		c := &clocks{docker: enginetest.New()}
		c.docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
		var taken []labels.ID
		warned := 0
		take := func(o capture.Options) {
			t.Helper()
			o.Container = "web"
			made, err := c.engine().Create(t.Context(), o, func(e plan.Event) {
				if e.Level == plan.LevelWarning {
					warned++
				}
			})
			assert.NilError(t, err)
			taken = append(taken, made.ID)
		}
		check := func() {
			t.Helper()
			all, err := c.engine().List(t.Context(), catalog.ListOptions{Container: "web"}, nil)
			assert.NilError(t, err)
			assert.Equal(t, len(all), len(taken))
			for i, s := range all { // newest first
				at := len(taken) - 1 - i
				assert.Equal(t, s.ID, taken[at])
				if at > 0 {
					assert.Equal(t, s.Parent, taken[at-1])
				}
			}
			assert.Assert(t, slices.IsSorted(taken))
			latest, err := c.engine().Resolve(t.Context(), "web:latest")
			assert.NilError(t, err)
			assert.Equal(t, latest.ID, taken[len(taken)-1])
		}
		automatic := capture.Options{Trigger: labels.TriggerInterval}
		take(automatic)
		take(automatic)
		c.set(client, engine)
		take(automatic)
		take(capture.Options{Name: "named"})
		check()
		c.set(-client, -engine)
		take(automatic)
		take(automatic)
		check()
		assert.Equal(t, warned > 0, client != 0) // of the client's clock, at least once

		// the oldest automatic ones go, not those that were taken last
		_, err := c.engine().Prune(t.Context(), removal.PruneOptions{Options: retention.Options{Policy: retention.Policy{MaxSnapshots: 2}}}, nil)
		assert.NilError(t, err)
		taken = taken[3:]
		all, err := c.engine().List(t.Context(), catalog.ListOptions{Container: "web"}, nil)
		assert.NilError(t, err)
		var left []labels.ID
		for _, s := range slices.Backward(all) {
			left = append(left, s.ID)
		}
		assert.DeepEqual(t, left, taken)

		// without the latest, the one before it is
		for _, r := range c.engine().Remove(t.Context(), []string{"web:latest"}, removal.Options{}, nil) {
			assert.NilError(t, r.Err)
		}
		latest, err := c.engine().Resolve(t.Context(), "web:latest")
		assert.NilError(t, err)
		assert.Equal(t, latest.ID, taken[1])
	})
}

// If only one clock is ahead, nothing expires for that.
func TestNothingExpiresTooEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		client, engine time.Duration
		gone           bool
	}{
		"client ahead":  {day, 0, false},
		"engine ahead":  {0, day, false},
		"a day later":   {day, day, true},
		"client behind": {-day, 0, false},
		"both behind":   {-day, -day, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clocks{docker: enginetest.New()}
			c.docker.Run(t, "web")
			made, err := c.engine().Create(t.Context(), capture.Options{Container: "web", Expires: c.docker.Clock.Add(time.Hour)}, nil)
			assert.NilError(t, err)
			c.set(tc.client, tc.engine)
			_, err = c.engine().Prune(t.Context(), removal.PruneOptions{Options: retention.Options{Automatic: true, ExpiredOnly: true}}, nil)
			assert.NilError(t, err)
			assert.Equal(t, c.docker.FindImage(made.ImageID) == nil, tc.gone)
		})
	}
}

// A restore in place, and taking it back, work although clocks are set before each.
func TestClocksThatAreSetDoNotDisturbRestores(t *testing.T) {
	eachShift(t, func(t *testing.T, client, engine time.Duration) {
		c := &clocks{docker: enginetest.New()}
		web := c.docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data"}})
		assert.NilError(t, c.docker.ContainerStart(t.Context(), web.ID, container.StartOptions{}))
		c.docker.FindVolume("data").Content = "one"
		made, err := c.engine().Create(t.Context(), capture.Options{Container: "web"}, nil)
		assert.NilError(t, err)
		c.docker.FindVolume("data").Content = "two"
		c.set(client, engine)
		replaced, err := c.engine().Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(made.ID)}}, nil)
		assert.NilError(t, err)
		assert.Equal(t, c.docker.Data(), "one")
		assert.Assert(t, replaced.Safety.ID > made.ID)
		c.set(-client, -engine)
		_, err = c.engine().Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: string(replaced.Safety.ID)}}, nil)
		assert.NilError(t, err)
		assert.Equal(t, c.docker.Data(), "two")
	})
}
