package commands

import (
	"io"
	"strings"
	"testing"

	"github.com/docker/cli/cli/streams"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func TestRemoveAllAsksOnce(t *testing.T) {
	web, pinned, db := firstSnapshot(), firstSnapshot(), secondSnapshot()
	web.Pinned, web.ID = false, "20260314-100000-000001"
	const question = "WARNING! This will remove, for good:\n  - 1 snapshot of web (1 pinned kept; remove with --force)\n  - 1 snapshot of db\nAre you sure"
	for _, tc := range []struct {
		name     string
		args     []string
		terminal bool
		list     []catalog.Snapshot
		answer   string
		removed  []string
		fails    string
		stderr   string
	}{
		{"yes", nil, true, []catalog.Snapshot{web, pinned, db}, "y\n", []string{string(secondID), string(web.ID)}, "", question},
		{"no", nil, true, []catalog.Snapshot{web, pinned, db}, "n\n", nil, "cancelled: nothing was changed", question},
		{"no terminal", nil, false, []catalog.Snapshot{web, db}, "y\n", nil, "rm --all asks for confirmation; without a terminal, add --force", ""},
		{"forced", []string{"--force"}, false, []catalog.Snapshot{web, pinned, db}, "", []string{string(secondID), string(pinned.ID), string(web.ID)}, "", ""},
		{"only pinned ones", nil, true, []catalog.Snapshot{pinned}, "y\n", nil, "snapshot " + string(firstID) + " is pinned\nUse --force to remove it anyway", ""},
		{"none", nil, true, nil, "y\n", nil, "container shop has no snapshots\n'docker snapshot ls' lists the snapshots there are", ""},
		{"none, by force", []string{"--force"}, false, nil, "", nil, "", "container shop has no snapshots\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.engine.list = tc.list
			d := f.deps()
			d.in = streams.NewIn(io.NopCloser(strings.NewReader(tc.answer)))
			d.in.SetIsTerminal(tc.terminal)
			root := newRoot(d)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"rm", "--all", "shop"}, tc.args...))
			err := root.ExecuteContext(t.Context())
			if tc.fails == "" {
				assert.NilError(t, err)
			} else {
				assert.Error(t, err, tc.fails)
			}
			assert.DeepEqual(t, f.engine.removed, tc.removed)
			assert.Assert(t, strings.HasPrefix(f.stderr.String(), tc.stderr), f.stderr.String())
		})
	}
}
