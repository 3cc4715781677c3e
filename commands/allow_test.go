package commands

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
)

func TestAllowTakesListsAndMayBeRepeated(t *testing.T) {
	f := newFixture()
	f.engine.restored = restoredCopy()
	assert.Equal(t, f.run(t, "restore", "--allow", "bind=/srv,privileged", "--allow", `"volume-opt=o=addr=10.0.0.1,rw",pid`, "x"), 0, f.stderr.String())
	assert.DeepEqual(t, f.engine.restore.Allow, []snapshot.Access{
		{Kind: "bind", Value: "/srv"}, {Kind: "privileged"}, {Kind: "volume-opt", Value: "o=addr=10.0.0.1,rw"}, {Kind: "pid"},
	})
	f = newFixture()
	assert.Equal(t, f.run(t, "restore", "--allow", "everything", "x"), 125)
	assert.Assert(t, strings.Contains(f.stderr.String(), `unknown kind of access "everything": use privileged, cap-add, `), f.stderr.String())
}

// What a message tells to type is read as what the snapshot asks for.
func TestTheAdviceAllowsWhatIsAskedFor(t *testing.T) {
	for _, value := range []string{"/srv", "/a b", "/a,b", `/a"b`, "'", "o=x,y", "a\nb", " a"} {
		asked := snapshot.Access{Kind: snapshot.AccessBind, Value: value}
		text := explainProblems(&snapshot.ProblemsError{Problems: []snapshot.Problem{{Kind: snapshot.ProblemHostAccess, Subject: asked.String(), Text: "x"}}})
		_, word, found := strings.Cut(text, "--allow ")
		assert.Assert(t, found, text)
		if quoted, ok := strings.CutPrefix(word, "'"); ok {
			word = strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), `'\''`, "'")
		}
		var list []snapshot.Access
		assert.NilError(t, allowed{&list}.Set(word))
		assert.DeepEqual(t, list, []snapshot.Access{asked})
	}
}

func TestKindsOfAccessComplete(t *testing.T) {
	words := strings.Join(complete(t, newFixture(), "snapshot restore --allow |"), "\n")
	assert.Assert(t, strings.HasPrefix(words, "privileged"), words)
	assert.Assert(t, strings.Contains(words, "bind"), words)
}
