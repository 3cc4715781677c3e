package commands

import (
	"io"
	"strings"
	"testing"

	"github.com/docker/cli/cli/streams"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// replacedAs is the restore in place of a container that is called name then. Its safety snapshot has this ID.
func replacedAs(name, before string, safety labels.ID) replace.Result {
	r := replace.Result{Restored: build.Restored{Name: name, ContainerID: "id-of-" + name, Snapshot: firstSnapshot(), Plan: plan.Plan{{Op: plan.OpCreateContainer, Target: name}}}, Old: before}
	if safety != "" {
		r.Safety = &catalog.Snapshot{Record: labels.Record{ID: safety, Container: labels.Container{Name: before}}}
	}
	return r
}

func TestSeveralContainersGoBackTogether(t *testing.T) {
	const one, two = "20260314-100000-111111", "20260314-100000-222222"
	for name, tc := range map[string]struct {
		results []replace.Result
		undo    string // which container
	}{
		"all were there": {[]replace.Result{replacedAs("web", "web", one), replacedAs("db", "db", two)}, "web"},
		"one was gone":   {[]replace.Result{replacedAs("web", "", ""), replacedAs("db", "db", two)}, "db"},
		"all were gone":  {[]replace.Result{replacedAs("web", "", ""), replacedAs("db", "", "")}, ""},
		"one had another name": {
			[]replace.Result{replacedAs("web", "web-old", one), replacedAs("db", "db", two)}, "web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			eng := &replacingEngine{together: tc.results}
			f, err := runReplacing(t, eng, nil, "restore", "--replace", "--force", "web:a", "db:a")
			assert.NilError(t, err)
			assert.DeepEqual(t, eng.asked, [][]string{{"web:a", "db:a"}})
			assert.Equal(t, f.stdout.String(), "id-of-web\nid-of-db\n")
			told := ""
			if tc.undo != "" {
				told = "To take it back: docker snapshot undo " + tc.undo + "\n"
			}
			assert.Equal(t, withoutState(f.stderr.String()), told)
		})
	}
}

func TestAPlanOfSeveralNamesEachContainer(t *testing.T) {
	eng := &replacingEngine{together: []replace.Result{replacedAs("web", "web", ""), replacedAs("db", "db", "")}}
	f, err := runReplacing(t, eng, nil, "restore", "--replace", "--dry-run", "web:a", "db:a")
	assert.NilError(t, err)
	assert.DeepEqual(t, eng.asked, [][]string{{"--", "web:a", "db:a"}})
	assert.Equal(t, f.stdout.String(), "container web:\ncreate container web\nno changes\ncontainer db:\ncreate container db\nno changes\n")
}

// Who says yes gets what he was told: the snapshots of that moment.
func TestTheUserIsAskedOnceForAll(t *testing.T) {
	eng := &replacingEngine{together: []replace.Result{replacedAs("web", "web", ""), replacedAs("db", "db", "")}}
	f := newFixture()
	d := f.deps()
	d.in = streams.NewIn(io.NopCloser(strings.NewReader("y\n")))
	d.in.SetIsTerminal(true)
	d.engine = func(volumeOptions) (engine, error) { return eng, nil }
	root := newRoot(d)
	root.SetArgs([]string{"restore", "--replace", "web", "db"})
	assert.NilError(t, root.ExecuteContext(t.Context()))
	assert.DeepEqual(t, eng.asked, [][]string{{"--", "web", "db"}, {string(firstID), string(firstID)}})
	assert.Equal(t, strings.Count(f.stderr.String(), "Are you sure"), 1)
	assert.Assert(t, strings.Contains(f.stderr.String(), "This replaces container web with the state of"), f.stderr.String())
	assert.Assert(t, strings.Contains(f.stderr.String(), "This replaces container db with the state of"))
}
