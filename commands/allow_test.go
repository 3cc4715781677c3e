package commands

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

func TestAllowTakesListsAndMayBeRepeated(t *testing.T) {
	f := newFixture()
	f.engine.restored = restoredCopy()
	assert.Equal(t, f.run(t, "restore", "--allow", "bind=/srv,privileged", "--allow", `"volume-opt=o=addr=10.0.0.1,rw",pid`, "x"), 0, f.stderr.String())
	assert.DeepEqual(t, f.engine.restore.Allow, []runconfig.Access{
		{Kind: "bind", Value: "/srv"}, {Kind: "privileged"}, {Kind: "volume-opt", Value: "o=addr=10.0.0.1,rw"}, {Kind: "pid"},
	})
	f = newFixture()
	assert.Equal(t, f.run(t, "restore", "--allow", "everything", "x"), 125)
	assert.Assert(t, strings.Contains(f.stderr.String(), `unknown kind of access "everything": use privileged, cap-add, `), f.stderr.String())
}

// What a message tells to type is read as what the snapshot asks for.
func TestTheAdviceAllowsWhatIsAskedFor(t *testing.T) {
	for _, value := range []string{"/srv", "/a b", "/a,b", `/a"b`, "'", "o=x,y", "a\nb", " a"} {
		asked := runconfig.Access{Kind: runconfig.AccessBind, Value: value}
		text := explainProblems(&plan.ProblemsError{Problems: []plan.Problem{{Kind: plan.ProblemHostAccess, Subject: asked.String(), Text: "x"}}})
		_, word, found := strings.Cut(text, "--allow ")
		assert.Assert(t, found, text)
		if quoted, ok := strings.CutPrefix(word, "'"); ok {
			word = strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), `'\''`, "'")
		}
		var list []runconfig.Access
		assert.NilError(t, allowed{&list}.Set(word))
		assert.DeepEqual(t, list, []runconfig.Access{asked})
	}
}

func TestKindsOfAccessComplete(t *testing.T) {
	words := strings.Join(complete(t, newFixture(), "snapshot restore --allow |"), "\n")
	assert.Assert(t, strings.HasPrefix(words, "privileged"), words)
	assert.Assert(t, strings.Contains(words, "bind"), words)
}
