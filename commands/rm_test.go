package commands

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
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
	assert.Equal(t, failed, `{"status":"error","error":"no such snapshot: gone\n'docker snapshot ls' lists the snapshots there are"}`)
	assert.Assert(t, is.Regexp(`^{"status":"removed","timestamp":"2026-03-14T12:00:00Z","id":"`+string(secondID)+`",.*}\n$`, removed))
}
