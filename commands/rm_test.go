package commands

import (
	"context"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

func TestRemoveGoesOnAfterAnError(t *testing.T) {
	for _, tc := range []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string
	}{
		{"one", []string{string(secondID)}, 0, string(secondID) + "\n", ""},
		{
			"one of them is gone",
			[]string{"gone", string(secondID)},
			1, string(secondID) + "\n",
			"no such snapshot: gone\n'docker snapshot ls' lists the snapshots there are\n",
		},
		{"gone, by force", []string{"-f", "gone", string(secondID)}, 0, string(secondID) + "\n", "no such snapshot: gone\n"},
		{
			"pinned",
			[]string{"before", string(secondID)},
			1, string(secondID) + "\n",
			"snapshot " + string(firstID) + " is pinned\nUse --force to remove it anyway\n",
		},
		{"pinned, by force", []string{"--force", "before"}, 0, string(firstID) + "\n", ""},
		{"empty", []string{""}, 1, "", "snapshot name cannot be empty\n"},
		{
			"by template",
			[]string{"--format", "{{.Container}} {{.Status}} {{.Timestamp}}", string(secondID)},
			0,
			"db removed 2026-03-14T12:00:00Z\n", "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.engine.list = []catalog.Snapshot{firstSnapshot(), secondSnapshot()}
			assert.Equal(t, f.run(t, append([]string{"rm"}, tc.args...)...), tc.status)
			assert.Equal(t, f.stdout.String(), tc.stdout)
			assert.Equal(t, f.stderr.String(), tc.stderr)
		})
	}
}

func TestRemoveNeedsASnapshot(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "rm"), 125)
	assert.Assert(t, is.Contains(f.stderr.String(), "requires at least 1 argument"))
	f = newFixture()
	assert.Equal(t, f.run(t, "rm", "-f"), 0)
	assert.Equal(t, f.stdout.String()+f.stderr.String(), "")
	assert.Equal(t, f.engine.calls, 0)
}

func TestRemovePrintsAJSONLineForEach(t *testing.T) {
	f := newFixture()
	f.engine.list = []catalog.Snapshot{secondSnapshot()}
	assert.Equal(t, f.run(t, "remove", "--format", "json", "gone", string(secondID)), 1)
	failed, removed, _ := strings.Cut(f.stdout.String(), "\n")
	assert.Equal(t, failed, `{"status":"error","code":"not_found","error":"no such snapshot: gone\n'docker snapshot ls' lists the snapshots there are","problems":[]}`)
	assert.Assert(t, is.Regexp(`^{"status":"removed","timestamp":"2026-03-14T12:00:00Z","id":"`+string(secondID)+`",.*}\n$`, removed))
}

// copiesEngine has copies of a snapshot.
type copiesEngine struct {
	fakeEngine
	removed []copies.Removed
	forced  bool
}

func (e *copiesEngine) RemoveCopies(_ context.Context, _ []string, force bool, _ plan.Progress) []copies.Removed {
	e.forced = force
	return e.removed
}

func TestRemoveCopies(t *testing.T) {
	gone := copies.Removed{Word: "gone", Err: &catalog.NotFoundError{Word: "gone"}}
	removed := copies.Removed{Word: "before", ID: firstID, Containers: []string{"web-1", "web-2"}, Volumes: []string{"data-1"}}
	busy := copies.Removed{Word: "busy", ID: secondID, Err: &copies.InUseError{Snapshot: secondID, Containers: []string{"db-1"}}}
	for _, tc := range []struct {
		name           string
		args           []string
		results        []copies.Removed
		status         int
		stdout, stderr string
	}{
		{"what was removed", []string{"before"}, []copies.Removed{removed}, 0, "web-1\nweb-2\ndata-1\n", ""},
		{
			"one is gone, one in use",
			[]string{"gone", "busy", "before"},
			[]copies.Removed{gone, busy, removed},
			1, "web-1\nweb-2\ndata-1\n",
			"no such snapshot: gone\n'docker snapshot ls' lists the snapshots there are\ncopies of snapshot " + string(secondID) +
				" are in use: container db-1 is running\nStop them first, or use --force to remove them anyway\n",
		},
		{"gone, by force", []string{"-f", "gone"}, []copies.Removed{gone}, 0, "", "no such snapshot: gone\n"},
		{
			"JSON",
			[]string{"--format", "json", "before"},
			[]copies.Removed{removed},
			0, `{"status":"removed","timestamp":"2026-03-14T12:00:00Z","id":"` + string(firstID) + `","containers":["web-1","web-2"],"volumes":["data-1"]}` + "\n", "",
		},
		{"none", []string{"--format", "json", "before"}, []copies.Removed{{ID: firstID}}, 0, `{"status":"removed","timestamp":"2026-03-14T12:00:00Z","id":"` + string(firstID) + `","containers":[],"volumes":[]}` + "\n", ""},
		{"nothing, by force", []string{"-f"}, nil, 0, "", ""},
		{"empty", []string{""}, nil, 1, "", "snapshot name cannot be empty\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			eng := &copiesEngine{removed: tc.results}
			eng.list = []catalog.Snapshot{firstSnapshot()}
			f.evil = eng
			assert.Equal(t, f.run(t, append([]string{"rm", "--copies"}, tc.args...)...), tc.status)
			assert.Equal(t, f.stdout.String(), tc.stdout)
			assert.Equal(t, f.stderr.String(), tc.stderr)
		})
	}
}
