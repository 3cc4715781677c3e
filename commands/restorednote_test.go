package commands

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// before is a snapshot with a name, of container db, taken 12 minutes ago.
func before() catalog.Snapshot {
	s := firstSnapshot()
	s.Name, s.Created, s.Container.Name = "before-migration", noon.Add(-12*time.Minute), "db"
	return s
}

func TestRestoreInPlaceSaysWhichStateIsBack(t *testing.T) {
	title := "before-migration (" + string(firstID) + ")"
	for want, change := range map[string]func(*replace.Result, *replace.Options){
		"db is now as it was 12 minutes ago: " + title:           func(*replace.Result, *replace.Options) {},
		"db is now as it was 12 minutes ago: " + string(firstID): func(r *replace.Result, _ *replace.Options) { r.Snapshot.Name = "" },
		"data of db is now as it was 12 minutes ago: " + title:   func(_ *replace.Result, o *replace.Options) { o.Only = []string{"data"} },
		"a and b of db are now as they were 12 minutes ago: " + title: func(r *replace.Result, o *replace.Options) {
			o.Only, o.Live, r.Keeps = []string{"a", "b"}, true, true
		},
		"*.conf in data of db are now as they were 12 minutes ago: " + title: func(_ *replace.Result, o *replace.Options) {
			o.Only, o.Paths = []string{"data"}, []string{"*.conf"}
		},
		"logs of db is now as it was 12 minutes ago: " + title: func(r *replace.Result, o *replace.Options) {
			o.Lost, r.Volumes = true, []replace.VolumeChange{{Volume: "data", Kept: "it is not mounted"}, {Volume: "logs"}}
		},
		"other is now as it was in db 12 minutes ago: " + title: func(r *replace.Result, _ *replace.Options) { r.Name = "other" },
		"db is now as copy try was: " + string(firstID): func(r *replace.Result, _ *replace.Options) {
			r.Copy, r.Snapshot.Name = "try", ""
		},
	} {
		var o replace.Options
		r := replace.Result{Restored: build.Restored{Name: "db", Snapshot: before()}}
		change(&r, &o)
		assert.Check(t, describeReplaced(r, o, noon) == want, "%s\n%s", describeReplaced(r, o, noon), want)
	}
}

// copyingEngine restores copies, too.
type copyingEngine struct{ replacingEngine }

func (*copyingEngine) Restore(context.Context, runconfig.RestoreOptions, plan.Progress) (build.Restored, error) {
	return build.Restored{Name: "db-6add9c", Snapshot: before()}, nil
}

func (*copyingEngine) Fork(context.Context, copies.ForkOptions, plan.Progress) ([]build.Restored, error) {
	return []build.Restored{{Name: "db-1", Snapshot: before()}, {Name: "db-2", Snapshot: before()}, {Name: "db-3", Snapshot: before()}}, nil
}

// Everything that restores says so on stderr, and -q keeps it from doing so.
func TestEveryRestoreSaysWhichStateIsBack(t *testing.T) {
	inPlace := replace.Result{Restored: build.Restored{Name: "db", ContainerID: "id", Snapshot: before()}}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"restore", "x"}, "db-6add9c is a copy of db as it was 12 minutes ago: before-migration (" + string(firstID) + ")"},
		{[]string{"fork", "-n", "3", "x"}, "db-1 to db-3 are copies of db as it was 12 minutes ago: before-migration (" + string(firstID) + ")"},
		{[]string{"restore", "--replace", "--force", "x"}, "db is now as it was 12 minutes ago: before-migration (" + string(firstID) + ")"},
		{[]string{"restore", "--replace", "--force", "x", "y"}, "db is now as it was 12 minutes ago: before-migration (" + string(firstID) + ")"},
		{[]string{"promote", "--force", "x"}, "db is now as it was 12 minutes ago: before-migration (" + string(firstID) + ")"},
	} {
		for _, quiet := range []bool{false, true} {
			f := newFixture()
			f.evil = &copyingEngine{replacingEngine{replaced: inPlace, together: []replace.Result{inPlace}}}
			args := tc.args
			if quiet {
				args = append(args, "-q")
			}
			assert.Equal(t, f.run(t, args...), 0, f.stderr.String())
			assert.Equal(t, strings.Contains(f.stderr.String(), tc.want+"\n"), !quiet, f.stderr.String())
		}
	}
}

var stateLine = regexp.MustCompile(`(?m)^.* (is now|are now|is a copy of|are copies of) .* ago: .*\n`)

// withoutState leaves out of what was written on stderr which state was brought back.
func withoutState(stderr string) string { return stateLine.ReplaceAllString(stderr, "") }
