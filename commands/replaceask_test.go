package commands

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/docker/cli/cli/streams"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// previewingEngine answers a dry run of Replace, and records everything.
type previewingEngine struct {
	engine
	preview replace.Result
	pending int // so many times another restore in place is under way
	calls   []string
}

func (e *previewingEngine) Replace(_ context.Context, o replace.Options, p plan.Progress) (replace.Result, error) {
	p(plan.Event{Level: plan.LevelNote, Text: "a note"})
	if !o.DryRun {
		e.calls = append(e.calls, "replace "+o.Snapshot)
		return e.preview, nil
	}
	e.calls = append(e.calls, "look "+o.Snapshot)
	if e.pending--; e.pending >= 0 {
		return replace.Result{}, &replace.PendingError{Container: "other"}
	}
	return e.preview, nil
}

func (e *previewingEngine) Diff(context.Context, diff.Options, plan.Progress, func(diff.Change)) error {
	e.calls = append(e.calls, "diff")
	return nil
}

func (e *previewingEngine) TakenWith(context.Context, catalog.Snapshot) ([]catalog.Snapshot, error) {
	return nil, nil
}

func (e *previewingEngine) Settle(_ context.Context, container string, _ plan.Progress) error {
	e.calls = append(e.calls, "settle "+container)
	return nil
}

func previewed() replace.Result {
	s := firstSnapshot()
	s.Name, s.Created = "before-migration", noon.Add(-3*time.Minute)
	return replace.Result{
		Restored: build.Restored{Name: "db", Snapshot: s}, Old: "db", Stops: true, Saves: true,
		Volumes: []replace.VolumeChange{{Volume: "pgdata", Created: replace.Count{Entries: 2}, Changed: replace.Count{Entries: 3}, Deleted: replace.Count{Entries: 1}}},
	}
}

func TestReplaceAsksWithTheConfigurationThatChanges(t *testing.T) {
	planned := previewed()
	planned.Config = someConfigChanges[:3]
	assert.Assert(t, is.Contains(describeReplace(planned, noon), " ("+string(firstID)+"). Of the configuration this changes "+
		"image: app:1 instead of app:2; environment: remove DEBUG, change MODE. A snapshot is taken first."))
}

func TestReplaceSaysWhatItWillDoBeforeItAsks(t *testing.T) {
	const question = "This stops and replaces container db and rewrites volume pgdata (6 files change) with the state of 3 minutes ago: before-migration (" + string(firstID) + "). A snapshot is taken first.\n"
	for _, tc := range []struct {
		name, answer string
		terminal     bool
		args         []string
		pending      int
		want         []string // calls
		fails        string
	}{
		{name: "yes", answer: "y\n", terminal: true, want: []string{"look web:latest", "replace " + string(firstID)}},
		{name: "no", answer: "n\n", terminal: true, want: []string{"look web:latest"}, fails: "cancelled: nothing was changed"},
		{
			name: "after another", answer: "y\n", terminal: true, pending: 1,
			want: []string{"look web:latest", "settle other", "look web:latest", "replace " + string(firstID)},
		},
		{name: "nobody to answer", answer: "y\n", fails: "replacing a container asks for confirmation; without a terminal, add --force"},
		{name: "forced", args: []string{"--force"}, want: []string{"replace web:latest"}},
		{name: "a dry run", args: []string{"--dry-run"}, want: []string{"look web:latest", "diff"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			d := f.deps()
			d.in = streams.NewIn(io.NopCloser(strings.NewReader(tc.answer)))
			d.in.SetIsTerminal(tc.terminal)
			eng := &previewingEngine{preview: previewed(), pending: tc.pending}
			d.engine = func(volumeOptions) (engine, error) { return eng, nil }
			root := newRoot(d)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"restore", "--replace", "web:latest"}, tc.args...))
			err := root.ExecuteContext(t.Context())
			if tc.fails == "" {
				assert.NilError(t, err)
			} else {
				assert.Error(t, err, tc.fails)
			}
			assert.DeepEqual(t, eng.calls, tc.want)
			assert.Equal(t, strings.Contains(f.stderr.String(), question), tc.terminal, f.stderr.String())
			if tc.pending == 0 {
				assert.Assert(t, strings.Count(f.stderr.String(), "a note") <= 1, f.stderr.String())
			}
		})
	}
}

func TestTheQuestionNamesEverything(t *testing.T) {
	for want, change := range map[string]func(*replace.Result){
		"This makes container db again and rewrites":                                                         func(r *replace.Result) { r.Old = "" },
		"This replaces container db and rewrites":                                                            func(r *replace.Result) { r.Stops = false },
		"container db-old, which was named db when it was captured and will be named db again, and rewrites": func(r *replace.Result) { r.Old = "db-old" },
		"with the state of 3 minutes ago: " + string(firstID) + ". A":                                        func(r *replace.Result) { r.Snapshot.Name = "" },
		"rewrites volume pgdata (6 files change) and makes volume logs again with the state of": func(r *replace.Result) {
			r.Volumes = append(r.Volumes, replace.VolumeChange{Volume: "logs", Made: true})
		},
		"replaces container db with the state of":                             func(r *replace.Result) { r.Volumes = []replace.VolumeChange{{Volume: "pgdata"}} },
		"). 1 volume is left as it is: pgdata. A snapshot":                    func(r *replace.Result) { r.Volumes[0].Kept = "the container only reads it" },
		"). Meanwhile 2 other containers are stopped: a and b. A snapshot":    func(r *replace.Result) { r.Others = []string{"a", "b"} },
		"This stops container db, starts it again and rewrites volume pgdata": func(r *replace.Result) { r.Keeps = true },
		"This freezes container db for a moment and rewrites volume pgdata":   func(r *replace.Result) { r.Keeps, r.Stops, r.Freezes = true, false, true },
		"This keeps container db and rewrites volume pgdata":                  func(r *replace.Result) { r.Keeps, r.Stops = true, false },
		"). No snapshot is taken first.":                                      func(r *replace.Result) { r.Saves = false },
		"rewrites volume pgdata (1 file changes) with the state of": func(r *replace.Result) {
			r.Volumes[0] = replace.VolumeChange{Volume: "pgdata", Changed: replace.Count{Entries: 1}}
		},
	} {
		r := previewed()
		change(&r)
		assert.Check(t, is.Contains(describeReplace(r, noon), want))
	}
}
