package commands

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func TestSeveralContainersAreCapturedTogether(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot()}
	f.engine.containers = []string{"web", "shop-db-1"}
	f.engine.services = []catalog.Service{{Name: "db", Container: "shop-db-1", Project: "shop"}}
	f.environment = map[string]string{projectVariable: "shop"}
	assert.Equal(t, f.run(t, "create", "--with", "db", "--group", "g", "web", "before"), 0, f.stderr.String())
	var asked []string
	for _, o := range f.engine.together {
		asked = append(asked, o.Container+":"+o.Name+" "+o.Group)
	}
	assert.DeepEqual(t, asked, []string{"web:before g", "shop-db-1:before g"})
	assert.Equal(t, f.stdout.String(), strings.Repeat(string(firstID)+"\n", 2))
}

func TestEachIncompleteSnapshotIsTold(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot(), Incomplete: true}
	assert.Equal(t, f.run(t, "create", "--format", "json", "--with", "db", "web"), 3)
	assert.Equal(t, strings.Count(f.stdout.String(), "\n"), 2)
	assert.Equal(t, strings.Count(f.stderr.String(), "is incomplete: see the warnings"), 2)
}

// A run is of one container, so a command within it that captures several takes no number in it.
func TestSnapshotsOfSeveralContainersAreNotOfTheRunAround(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot()}
	f.environment = map[string]string{variableContainer: "web", variableRunID: "42"}
	assert.Equal(t, f.run(t, "create"), 0, f.stderr.String())
	assert.Equal(t, f.engine.create.RunID, "42")
	assert.Equal(t, f.run(t, "create", "--with", "db"), 0, f.stderr.String())
	assert.Equal(t, len(f.engine.together), 2)
	for _, o := range f.engine.together {
		assert.Equal(t, o.RunID, "")
	}
}

func TestWhatIsOfOneSnapshotDoesNotGoWithSeveral(t *testing.T) {
	for _, args := range [][]string{{"--run-id", "1"}, {"--step-id", "1"}, {"--idempotency-key", "k"}, {"--if-usage", "0.9"}, {"--changes"}, {"--attach", "a=/dev/null"}} {
		f := newFixture()
		assert.Equal(t, f.run(t, append([]string{"create", "--with", "db", "web"}, args...)...), 125)
		assert.Assert(t, strings.Contains(f.stderr.String(), "conflicting options: --with and "+args[0]), f.stderr.String())
	}
}
