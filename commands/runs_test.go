package commands

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// A run is listed with the snapshots that exist, and with the number of those that it took.
func TestRunsCountTheSnapshotsThatExist(t *testing.T) {
	for _, tc := range []struct {
		exist   []catalog.Snapshot
		column  string
		removed int
	}{
		{nil, "0 of 2", 2},
		{[]catalog.Snapshot{firstSnapshot()}, "1 of 2", 1},
		{[]catalog.Snapshot{firstSnapshot(), secondSnapshot()}, "2", 0},
	} {
		f := newFixture()
		eng := &printingEngine{}
		eng.list = tc.exist
		f.evil = eng
		assert.Equal(t, f.run(t, "runs", "ls", "--format", "{{.Snapshots}}"), 0, f.stderr.String())
		assert.Equal(t, strings.TrimSpace(f.stdout.String()), tc.column)

		f = newFixture()
		f.evil = eng
		assert.Equal(t, f.run(t, "runs", "inspect", "--format", "{{.SnapshotCount}} {{.SnapshotsTaken}} {{range .Snapshots}}{{.Removed}} {{end}}", "42"), 0)
		assert.Equal(t, strings.Count(f.stdout.String(), "true"), tc.removed)
	}
}
