package commands

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/retention"
)

// twoPruned are a snapshot that goes, and one that stays.
func twoPruned() removal.Pruned {
	return removal.Pruned{All: []removal.Pruning{
		{Snapshot: secondSnapshot(), Decision: retention.Decision{Removed: true, Reason: retention.TooOld, Detail: "older than 7 days"}},
		{Snapshot: firstSnapshot(), Decision: retention.Decision{Reason: retention.InUse, Detail: "in use by container web"}},
	}, Freed: 1_500_000}
}

func TestPruneTakesLimitsFromSettingsAndOptions(t *testing.T) {
	f := newFixture()
	f.config = map[string]string{"max-snapshots": "4"}
	f.environment = map[string]string{"DOCKER_SNAPSHOT_MAX_TOTAL": "40"}
	assert.Equal(t, f.run(t, "prune", "-f", "--keep-last", "3", "--older-than", "2d", "--max-total", "0", "--max-size", "2GB", "--all"), 0, f.stderr.String())
	o := f.engine.prunes[0]
	want := retention.Default()
	want.MaxSnapshots, want.MaxTotal = 4, 40
	assert.DeepEqual(t, o.Policy, want)
	want.MaxSnapshots, want.MaxAgent, want.MaxTotal, want.MaxAge, want.MaxSize = 3, 3, 0, 48*time.Hour, 2_000_000_000
	assert.DeepEqual(t, o.InAll(), want)
	assert.Assert(t, o.All && o.Force && !o.DryRun && !o.Automatic)
	assert.Equal(t, f.stdout.String(), "Total reclaimed space: 0B\n")
}

func TestPruneAsks(t *testing.T) {
	const question = "WARNING! This will remove, for good:\n  - 1 snapshot of db\n--dry-run shows which, and why.\nAre you sure you want to continue? [y/N] "
	f := newFixture()
	f.engine.pruned, f.stdin = twoPruned(), "y\n"
	assert.Equal(t, f.run(t, "prune"), 0)
	assert.Equal(t, f.stderr.String(), question)
	assert.Equal(t, f.stdout.String(), string(secondID)+"\nTotal reclaimed space: 1.5MB\n")
	assert.Equal(t, len(f.engine.prunes), 2)
	assert.Assert(t, f.engine.prunes[0].DryRun && f.engine.prunes[0].Agreed == nil)
	assert.Assert(t, !f.engine.prunes[1].DryRun)
	assert.Equal(t, len(f.engine.prunes[1].Agreed.All), 2)

	for _, answer := range []string{"n\n", "", "\n"} {
		f = newFixture()
		f.engine.pruned, f.stdin = twoPruned(), answer
		assert.Equal(t, f.run(t, "prune"), 1)
		assert.Equal(t, f.stderr.String(), question+"cancelled: nothing was changed\n")
		assert.Equal(t, len(f.engine.prunes), 1)
		assert.Assert(t, f.engine.prunes[0].DryRun)
	}
	f = newFixture() // there is nothing to ask about
	assert.Equal(t, f.run(t, "prune"), 0)
	assert.Equal(t, f.stderr.String(), "")
}

func TestPruneShowsWhatADryRunFinds(t *testing.T) {
	f := newFixture()
	f.engine.pruned = twoPruned()
	assert.Equal(t, f.run(t, "prune", "--dry-run"), 0)
	assert.Equal(t, f.stdout.String(), ""+
		"SNAPSHOT ID              CONTAINER   NAME     CREATED               ACTION   REASON\n"+
		"20260314-113000-323846   db                   2026-03-14 11:30:00   remove   older than 7 days\n"+
		"20260314-092653-58979a   web         before   2026-03-14 09:26:53   keep     in use by container web\n")
	assert.Assert(t, f.engine.prunes[0].DryRun)
	assert.Equal(t, len(f.engine.prunes), 1)
}

func TestPruneCheckHasAnExitStatus(t *testing.T) {
	f := newFixture()
	f.engine.pruned = twoPruned()
	assert.Equal(t, f.run(t, "prune", "--check"), 3)
	assert.Assert(t, strings.Contains(f.stdout.String(), string(secondID)))
	assert.Assert(t, !strings.Contains(f.stdout.String(), string(firstID)))
	assert.Equal(t, f.stderr.String(), "1 snapshot is beyond the limits or expired: docker snapshot prune removes them\n")
	assert.Assert(t, f.engine.prunes[0].DryRun)

	f = newFixture()
	f.engine.pruned = removal.Pruned{All: twoPruned().All[1:]}
	assert.Equal(t, f.run(t, "prune", "--check"), 0)
	assert.Equal(t, f.stdout.String()+f.stderr.String(), "")
}

func TestPruneGoesOnAfterAFailure(t *testing.T) {
	f := newFixture()
	f.engine.pruned = twoPruned()
	f.engine.pruned.All[1].Removed, f.engine.pruned.All[1].Err = true, errors.New("it broke")
	assert.Equal(t, f.run(t, "prune", "-f"), 1)
	assert.Equal(t, f.stdout.String(), string(secondID)+"\nTotal reclaimed space: 1.5MB\n")
	assert.Equal(t, f.stderr.String(), "snapshot before ("+string(firstID)+"): it broke\n")
}

func TestPruneRefusesWrongOptions(t *testing.T) {
	for _, args := range [][]string{
		{"--keep-last", "-1"},
		{"--keep-last", "few"},
		{"--older-than", "-1h"},
		{"--older-than", "7"},
		{"--max-total", "1.5"},
		{"--max-size", "big"},
		{"--filter", "nonsense"},
		{"web"},
	} {
		f := newFixture()
		status := f.run(t, append([]string{"prune"}, args...)...)
		assert.Assert(t, status == 125 || status == 1 && args[0] == "web", "%v: %d %s", args, status, f.stderr.String())
		assert.Equal(t, len(f.engine.prunes), 0)
	}
}

func TestCreateHasTheRestRemoved(t *testing.T) {
	for _, trigger := range []labels.Trigger{labels.TriggerManual, labels.TriggerInterval} {
		f := newFixture()
		f.engine.created = capture.Created{Snapshot: secondSnapshot()}
		f.engine.created.Trigger = trigger
		assert.Equal(t, f.run(t, "create", "--trigger", string(trigger), "db"), 0)
		assert.DeepEqual(t, f.tidied, []bool{trigger == labels.TriggerManual})
	}
	f := newFixture()
	f.engine.err = errors.New("it broke")
	assert.Equal(t, f.run(t, "create", "db"), 1)
	assert.Equal(t, len(f.tidied), 0)
}

// The note comes once a day, and counts automatic snapshots: the limit is about those alone.
func TestCreateByHandSaysThatThereAreMoreThanTheLimit(t *testing.T) {
	const note = "container db has 11 automatic snapshots, and the limit is 10. Use docker snapshot prune to remove the oldest."
	created := secondSnapshot().Created
	for _, tc := range []struct {
		name      string
		automatic int
		newest    time.Time // zero: the day before
		args      []string
		labels    string
		noted     bool
	}{
		{name: "above", automatic: 11, noted: true},
		{name: "at the limit", automatic: 10},
		{name: "again on one day", automatic: 11, newest: created.Truncate(24 * time.Hour)},
		{name: "quiet", automatic: 11, args: []string{"--quiet"}},
		{name: "automatic", automatic: 11, args: []string{"--trigger", "interval"}},
		{name: "its own limit", automatic: 11, labels: `{"cua.snapshot.policy.keep":"20"}`},
		{name: "not counted", automatic: -1},
		{name: "replaces one", automatic: 11, args: []string{"--reuse"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			s := secondSnapshot()
			if tc.labels != "" {
				s.Config.Config = []byte(`{"Labels":` + tc.labels + `}`)
			}
			if tc.newest.IsZero() {
				tc.newest = created.Truncate(24 * time.Hour).Add(-time.Second)
			}
			f.engine.created, f.engine.count = capture.Created{Snapshot: s}, snapshot.Count{Automatic: tc.automatic, Newest: tc.newest}
			assert.Equal(t, f.run(t, append([]string{"create", "db", "name"}, tc.args...)...), 0)
			assert.Equal(t, strings.Contains(f.stderr.String(), note), tc.noted, f.stderr.String())
		})
	}
}

func TestTidyPrunesAutomatically(t *testing.T) {
	f := newFixture()
	f.environment = map[string]string{"DOCKER_SNAPSHOT_MAX_TOTAL": "40", "DOCKER_SNAPSHOT_AUTO_CLEANUP": "false"}
	fast, waited := hurriedClock()
	d := f.deps()
	d.clock, d.global = fast, []string{"--host", t.TempDir()} // a turn of its own
	assert.NilError(t, runTidy(t.Context(), d, tidyOptions{onlyExpired: true}))
	want := retention.Default()
	want.MaxTotal, want.AutoCleanup = 40, false
	assert.DeepEqual(t, f.engine.prunes[0].Options, retention.Options{Policy: want, Automatic: true, ExpiredOnly: true})
	assert.DeepEqual(t, *waited, []time.Duration{tidyDelay})
}
