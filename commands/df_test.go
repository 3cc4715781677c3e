package commands

import (
	"testing"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/space"
)

func TestUsageInTables(t *testing.T) {
	for file, args := range map[string][]string{
		"df.golden":         {"df"},
		"df-verbose.golden": {"df", "-v", "--by", "container"},
	} {
		f := newFixture()
		f.engine.outlook = someOutlook(firstSnapshot())
		assert.Equal(t, f.run(t, args...), 0, f.stderr.String())
		golden.Assert(t, f.stdout.String(), file)
	}
}

func TestAnEngineWithoutSnapshots(t *testing.T) {
	f := newFixture()
	f.engine.outlook = removal.Outlook{Report: space.Report{}}
	assert.Equal(t, f.run(t, "df"), 0, f.stderr.String())
	golden.Assert(t, f.stdout.String(), "df-empty.golden")
}

func TestUsageOfSome(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "df", "--by", "run", "--filter", "container=web"), 0, f.stderr.String())
	assert.Equal(t, f.engine.looked.By, space.ByRun)
	kept, err := f.engine.looked.Filter.Apply([]catalog.Snapshot{firstSnapshot()})
	assert.NilError(t, err)
	assert.Equal(t, len(kept), 1)
	assert.Equal(t, f.run(t, "df", "--by", "colour"), 125)
	assert.Equal(t, f.run(t, "df", "--filter", "colour=red"), 125)
	assert.Equal(t, f.run(t, "df", "web"), 125)
}
