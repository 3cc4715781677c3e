package commands

import (
	"io"
	"strings"
	"testing"

	"github.com/docker/cli/cli/streams"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// undoing is an engine that takes back a restore of the volume data.
func undoing() *replacingEngine {
	o := replace.Options{Only: []string{"data"}, RestoreOptions: runconfig.RestoreOptions{Snapshot: string(secondID)}}
	return &replacingEngine{undoes: []replace.Options{o}, together: []replace.Result{replacedAs("web", "web", firstID)}}
}

func TestUndoTakesTheLastRestoreBack(t *testing.T) {
	eng := undoing()
	f, err := runReplacing(t, eng, nil, "undo", "--force", "web")
	assert.NilError(t, err)
	assert.DeepEqual(t, eng.undone, []string{"web"})
	assert.DeepEqual(t, eng.asked, [][]string{{string(secondID)}})
	assert.Equal(t, f.stdout.String(), "id-of-web\n")
	assert.Equal(t, f.stderr.String(), "data of web is now as it was 3 hours ago: before ("+string(firstID)+")\nThe replaced state of web is snapshot "+string(firstID)+"\n")
}

func TestUndoAsksFirst(t *testing.T) {
	eng := undoing()
	_, err := runReplacing(t, eng, nil, "undo", "web")
	assert.ErrorContains(t, err, "without a terminal, add --force")
	assert.Equal(t, len(eng.asked), 0)

	for answer, want := range map[string][][]string{"y\n": {{"--", string(secondID)}, {string(secondID)}}, "n\n": {{"--", string(secondID)}}} {
		eng := undoing()
		f := newFixture()
		d := f.deps()
		d.in = streams.NewIn(io.NopCloser(strings.NewReader(answer)))
		d.in.SetIsTerminal(true)
		d.engine = func(volumeOptions) (engine, error) { return eng, nil }
		root := newRoot(d)
		root.SilenceErrors, root.SilenceUsage = true, true
		root.SetArgs([]string{"undo", "web"})
		assert.Equal(t, root.ExecuteContext(t.Context()) == nil, answer == "y\n")
		assert.DeepEqual(t, eng.asked, want)
		assert.Assert(t, is.Contains(f.stderr.String(), "This replaces container web with the state of 3 hours ago: before ("+string(firstID)+"). "))
	}
}

func TestUndoWithNothingToUndo(t *testing.T) {
	f := newFixture()
	f.evil = &printingEngine{}
	assert.Equal(t, f.run(t, "undo", "--force", "web"), 1)
	assert.Equal(t, f.stderr.String(), "nothing to undo: container web was not restored in place\n'docker snapshot ls web' lists the snapshots that restore --replace can bring back\n")
}

// Problems are solved by flags of restore, which undo does not have.
func TestUndoNamesTheCommandThatHasTheFlags(t *testing.T) {
	eng := undoing()
	d := newFixture().deps()
	err := d.withOtherFlags(&plan.ProblemsError{}, eng.undoes)
	assert.ErrorContains(t, err, "for the others, type: docker snapshot restore --replace "+string(secondID))
}
