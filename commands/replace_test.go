package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// replacingEngine answers Replace and Recover with what it is given.
type replacingEngine struct {
	engine
	replaced replace.Result
	options  replace.Options
	err      error
	together []replace.Result
	undoes   []replace.Options  // what FindUndo finds
	with     []catalog.Snapshot // taken together with any
	undone   []string           // the containers
	asked    [][]string         // words of snapshots, by ReplaceTogether; dry runs have -- before them
	changes  []diff.Change
	diffErr  error
	calls    []string // of Replace and Diff
}

func (e *replacingEngine) Diff(_ context.Context, o diff.Options, _ plan.Progress, visit func(diff.Change)) error {
	e.calls = append(e.calls, fmt.Sprintf("diff %s %s %v", o.Old, o.New, o.Without))
	for _, c := range e.changes {
		visit(c)
	}
	return e.diffErr
}

func (e *replacingEngine) Replace(_ context.Context, o replace.Options, _ plan.Progress) (replace.Result, error) {
	e.options = o
	e.calls = append(e.calls, "replace")
	return e.replaced, e.err
}

func (e *replacingEngine) ReplaceTogether(_ context.Context, all []replace.Options, _ plan.Progress) ([]replace.Result, error) {
	var words []string
	if all[0].DryRun {
		words = append(words, "--")
	}
	e.asked = append(e.asked, append(words, convert(all, func(o replace.Options) string { return o.Snapshot })...))
	return e.together, e.err
}

func (e *replacingEngine) Resolve(context.Context, string) (catalog.Snapshot, error) {
	return firstSnapshot(), e.err
}

func (e *replacingEngine) TakenWith(context.Context, catalog.Snapshot) ([]catalog.Snapshot, error) {
	return e.with, e.err
}

func (e *replacingEngine) FindUndo(_ context.Context, container string) ([]replace.Options, error) {
	e.undone = append(e.undone, container)
	return slices.Clone(e.undoes), e.err
}

func (e *replacingEngine) Recover(context.Context, string, plan.Progress) ([]replace.Recovery, error) {
	return nil, e.err
}

func runReplacing(t *testing.T, eng *replacingEngine, global []string, args ...string) (*fixture, error) {
	t.Helper()
	f := newFixture()
	d := f.deps()
	d.global = global
	d.engine = func(volumeOptions) (engine, error) { return eng, nil }
	root := newRoot(d)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	return f, root.ExecuteContext(t.Context())
}

func TestRestorePrintsHowToUndo(t *testing.T) {
	safety := firstSnapshot()
	eng := &replacingEngine{replaced: replace.Result{Restored: build.Restored{Name: "db", Snapshot: safety}, Safety: &safety}}
	for want, global := range map[string][]string{
		"docker snapshot undo db": nil,
		"docker --context 'far away' -H=ssh://me@host snapshot undo db": {"--context", "far away", "-H=ssh://me@host"},
	} {
		f, err := runReplacing(t, eng, global, "restore", "--replace", "--force", "--stop-others", "--volume", "shared", "x")
		assert.NilError(t, err)
		assert.Equal(t, withoutState(f.stderr.String()), "To take it back: "+want+"\n")
		assert.DeepEqual(t, eng.options.ReadOnly, []string{"shared"})
		assert.Equal(t, eng.options.HealthTimeout.String(), "0s") // as long as it needs
		f, err = runReplacing(t, eng, global, "restore", "--replace", "--force", "--format", "{{.Undo}}", "x")
		assert.NilError(t, err)
		assert.Equal(t, f.stdout.String(), want+"\n")
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"a-b_c/d.e:f=g,h@i": "a-b_c/d.e:f=g,h@i", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		assert.Equal(t, shellWord(word), want)
	}
}

// What cannot be put back is told with the state that everything is in, and with
// the command that goes on with it.
func TestAFailedUndoSaysHowToGoOn(t *testing.T) {
	stuck := &replace.UndoError{
		Container: "web", State: "Nothing was deleted. What there is now:\n  - it",
		Err: &plan.ProblemsError{Problems: []plan.Problem{{Kind: plan.ProblemVolumeInUse, Text: "volume data is in use"}}},
	}
	eng := &replacingEngine{err: errors.Join(errors.New("it broke"), stuck)}
	state := "container web could not be put back: cannot restore:\n  - volume data is in use: stop it, or use --stop-others\n" + stuck.State + "\n"
	hint := "When the cause is removed, type: docker --context far snapshot recover web"
	_, err := runReplacing(t, eng, []string{"--context", "far"}, "restore", "--replace", "--force", "--store", "mine", "x")
	assert.Error(t, err, "it broke\n"+state+"this is tried again in the background for 15 minutes\n"+hint)
	eng.err = stuck
	_, err = runReplacing(t, eng, []string{"--context", "far"}, "recover", "web")
	assert.Error(t, err, state+hint)
	eng.err = &replace.NotStartedError{Container: "web", Err: errors.New("container reader could not be started again")}
	_, err = runReplacing(t, eng, []string{"--context", "far"}, "recover", "web")
	assert.Error(t, err, "container reader could not be started again\n"+hint)
	eng.err = errors.New("it broke")
	_, err = runReplacing(t, eng, nil, "recover", "web")
	assert.Assert(t, !is.Contains(err.Error(), "type:")().Success())
}

func TestRecoverSaysThatThereIsNothingToDo(t *testing.T) {
	f, err := runReplacing(t, &replacingEngine{}, nil, "recover")
	assert.NilError(t, err)
	assert.Equal(t, f.stdout.String()+f.stderr.String(), "Nothing was interrupted.\n")
	f, err = runReplacing(t, &replacingEngine{}, nil, "recover", "--quiet")
	assert.NilError(t, err)
	assert.Equal(t, f.stdout.String()+f.stderr.String(), "")
}
