package commands

import (
	"errors"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

const (
	withSafety    = "diff web:20260314-092653-58979a web:20260314-113000-323846 [cache]"
	withContainer = "diff web:20260314-092653-58979a web [cache]"
)

func replacedWithChanges() *replacingEngine {
	safety := secondSnapshot()
	safety.Container = firstSnapshot().Container
	return &replacingEngine{changes: someChanges(), replaced: replace.Result{
		Restored: build.Restored{Name: "web", Snapshot: firstSnapshot(), ContainerID: "c0ffee"}, Old: "web", Safety: &safety,
		Volumes: []replace.VolumeChange{{Volume: "web-data", Created: replace.Count{Entries: 1}, Changed: replace.Count{Entries: 20}}, {Volume: "same"}, {Volume: "gone", Made: true}, {Volume: "cache", Kept: "the container only reads it"}},
	}}
}

// countsOfVolumes is what a restore in place has counted itself.
const countsOfVolumes = "web-data: 1 created, 20 changed, 0 deleted\nsame: no changes\ngone: made again\n"

// What a restore in place changed is what its safety snapshot and the snapshot differ in. Nobody waits for that who did not ask.
func TestARestoreInPlaceShowsWhatItChanged(t *testing.T) {
	for args, want := range map[string]struct{ calls, stdout, stderr string }{
		"":                           {"replace", "c0ffee\n", countsOfVolumes},
		"--format {{.Undo}}":         {"replace", "docker snapshot undo web\n", ""},
		"--files":                    {"replace, " + withSafety, "c0ffee\n", someFiles + someSums},
		"--files --format {{.Name}}": {"replace, " + withSafety, "before\n", ""},
		"--format {{.Changes.List|len}}{{.Changes.Counts|len}}": {"replace, " + withSafety, "32\n", ""},
		"--format {{.Changes.List|len}} --no-safety":            {"replace, " + withContainer + ", replace", "3\n", ""},
		"--files --no-safety":                                   {"replace, " + withContainer + ", replace", "c0ffee\n", someFiles + someSums},
	} {
		t.Run(args, func(t *testing.T) {
			eng := replacedWithChanges()
			if strings.Contains(args, "--no-safety") {
				eng.replaced.Safety = nil
			}
			words := strings.Fields(args)
			f, err := runReplacing(t, eng, nil, append([]string{"restore", "--replace", "--force", "x"}, words...)...)
			assert.NilError(t, err)
			assert.Equal(t, strings.Join(eng.calls, ", "), want.calls)
			assert.Equal(t, f.stdout.String(), want.stdout)
			shown := strings.ReplaceAll(withoutState(f.stderr.String()), "To take it back: docker snapshot undo web\n", "")
			assert.Equal(t, shown, want.stderr)
		})
	}
}

// A dry run always says how much would change, and with --files what.
func TestADryRunShowsWhatWouldChange(t *testing.T) {
	const kept = "volume cache: kept as it is (the container only reads it)\n"
	for args, want := range map[string]string{
		"":                               kept + someSums,
		"--files":                        kept + someFiles + someSums,
		"--format {{.Changes.List|len}}": "3\n",
	} {
		eng := replacedWithChanges()
		eng.replaced.Safety = nil
		f, err := runReplacing(t, eng, nil, append([]string{"restore", "--replace", "--dry-run", "x"}, strings.Fields(args)...)...)
		assert.NilError(t, err)
		assert.Equal(t, strings.Join(eng.calls, ", "), "replace, "+withContainer)
		assert.Equal(t, f.stdout.String(), want)
	}
}

// What is restored is restored, also if nobody knows what that changed.
func TestARestoreInPlaceSaysWhyItDoesNotKnowWhatChanged(t *testing.T) {
	eng := replacedWithChanges()
	eng.diffErr = errors.New("the store is gone")
	f, err := runReplacing(t, eng, nil, "restore", "--replace", "--force", "--format", "json", "x")
	assert.NilError(t, err)
	assert.Assert(t, is.Contains(f.stdout.String(), `"changes":null`))
	assert.Assert(t, is.Contains(f.stdout.String(), `"warnings":["what changes is not known: the store is gone"]`))

	eng = replacedWithChanges() // it was gone, and nothing was left of it
	eng.replaced.Old, eng.replaced.Safety = "", nil
	f, err = runReplacing(t, eng, nil, "restore", "--replace", "--force", "--files", "x")
	assert.NilError(t, err)
	assert.Equal(t, withoutState(f.stderr.String()), "nothing to compare with: there was nothing to take a safety snapshot of\n")
	assert.DeepEqual(t, eng.calls, []string{"replace"})
}

// Without a safety snapshot, what cannot be compared is not touched.
func TestWithoutASafetySnapshotChangesAreFoundFirst(t *testing.T) {
	eng := replacedWithChanges()
	eng.diffErr, eng.replaced.Safety = errors.New("the store is gone"), nil
	_, err := runReplacing(t, eng, nil, "restore", "--replace", "--force", "--no-safety", "--files", "x")
	assert.Error(t, err, "find out what would change: the store is gone")
	assert.DeepEqual(t, eng.calls, []string{"replace", withContainer}) // the first is a dry run
	assert.Assert(t, eng.options.DryRun)
}
