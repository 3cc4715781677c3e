package commands

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// takenOf is a snapshot of a container.
func takenOf(container string) catalog.Snapshot {
	s := secondSnapshot()
	s.Container.Name = container
	return s
}

// Who puts back one of several containers that were captured together hears that the others stay.
func TestRestoreOfOneOfAGroupNamesTheOthers(t *testing.T) {
	const both = "db and job, captured together with web, stay as they are now: restore --replace --group brings all of them back\n"
	eng := &replacingEngine{replaced: replacedAs("web", "web", ""), with: []catalog.Snapshot{takenOf("db"), takenOf("job")}}
	f, err := runReplacing(t, eng, nil, "restore", "--replace", "--force", "x")
	assert.NilError(t, err)
	assert.Equal(t, strings.Count(f.stderr.String(), both), 1, f.stderr.String())
	f, err = runReplacing(t, eng, nil, "restore", "--replace", "--dry-run", "x")
	assert.NilError(t, err)
	assert.Assert(t, is.Contains(f.stderr.String(), both))
	f, err = runReplacing(t, eng, nil, "restore", "--replace", "--force", "-q", "x")
	assert.NilError(t, err)
	assert.Assert(t, !strings.Contains(f.stderr.String(), "captured together"))

	db := replacedAs("db", "db", "")
	db.Snapshot.Container.Name = "db"
	eng.together = []replace.Result{replacedAs("web", "web", ""), db}
	f, err = runReplacing(t, eng, nil, "restore", "--replace", "--force", "x", "y")
	assert.NilError(t, err)
	assert.Assert(t, is.Contains(f.stderr.String(), "job, captured together with web, stays as it is now: "), f.stderr.String())
}

func TestGroupBringsBackAll(t *testing.T) {
	db := takenOf("db")
	eng := &replacingEngine{with: []catalog.Snapshot{db}, together: []replace.Result{replacedAs("web", "web", ""), replacedAs("db", "db", "")}}
	_, err := runReplacing(t, eng, nil, "restore", "--replace", "--force", "--group", "web:before")
	assert.NilError(t, err)
	assert.DeepEqual(t, eng.asked, [][]string{{firstSnapshot().Word(), db.Word()}})

	eng = &replacingEngine{}
	_, err = runReplacing(t, eng, nil, "restore", "--replace", "--force", "--group", "web:before")
	assert.Error(t, err, "snapshot before ("+string(firstID)+") was not taken together with one of another container: leave out --group")
	for want, args := range map[string][]string{
		"--group goes with --replace":                   {"--group", "x"},
		"--group takes one snapshot":                    {"--replace", "--group", "x", "y"},
		"--group and --only, which is for one snapshot": {"--replace", "--group", "--only", "data", "x"},
	} {
		_, err = runReplacing(t, eng, nil, append([]string{"restore"}, args...)...)
		assert.ErrorContains(t, err, want)
	}
	assert.Equal(t, len(eng.asked), 0)
}
