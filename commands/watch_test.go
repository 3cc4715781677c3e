package commands

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/snapshot/watch"
)

// watchEngine reports something of each kind, and ends.
type watchEngine struct {
	engine
	asked snapshot.WatchOptions
	err   error
}

func (e *watchEngine) Watch(_ context.Context, o snapshot.WatchOptions, tell watch.Tell) error {
	e.asked = o
	for _, r := range []watch.Report{
		{What: watch.Watching, Container: "web", ContainerID: "c1", Reason: "every 15m0s"},
		{What: watch.Started},
		{What: watch.Took, Container: "web", ContainerID: "c1", Snapshot: string(firstID), Trigger: "interval", Reason: "every 15m0s", FrozenMS: 41},
		{What: watch.Removed, Container: "web", Snapshot: string(firstID), Reason: "it has expired"},
		{What: watch.Warning, Container: "web", Error: "two\nlines and \x1b[2J"},
		{What: watch.Failed, Container: "web", Trigger: "event", Reason: "oom", Error: "no space"},
		{What: watch.Away, Error: "EOF"},
		{What: watch.Stopped},
	} {
		tell(r)
	}
	return e.err
}

func TestWatchWritesALineForEachEvent(t *testing.T) {
	for _, format := range []string{logText, logJSON} {
		f := newFixture()
		f.evil = &watchEngine{}
		assert.Equal(t, f.run(t, "watch", "--format", format), 0)
		golden.Assert(t, f.stdout.String(), "watch-"+format+".golden")
		assert.Equal(t, f.stderr.String(), "")
	}
}

func TestWatchOptions(t *testing.T) {
	f, eng := newFixture(), &watchEngine{}
	f.evil = eng
	args := "watch --interval 15m --schedule @daily --on die,oom --memory 85% --keep 3 --retention 2d web db"
	assert.Equal(t, f.run(t, strings.Fields(args)...), 0)
	assert.DeepEqual(t, eng.asked.When, watch.Texts{Interval: "15m", Schedule: "@daily", On: "die,oom", Memory: "85%"})
	assert.DeepEqual(t, eng.asked.Containers, []string{"web", "db"})
	assert.Equal(t, *eng.asked.Limits.KeepLast, 3)
	assert.Equal(t, *eng.asked.Limits.OlderThan, 48*time.Hour)
	assert.Assert(t, eng.asked.Policy.MaxTotal > 0)

	f, eng = newFixture(), &watchEngine{err: errors.New("nobody answers")}
	f.evil = eng
	assert.Equal(t, f.run(t, "watch"), 1)
	assert.Assert(t, eng.asked.Limits.KeepLast == nil && eng.asked.Limits.OlderThan == nil)
	for _, wrong := range []string{"--interval 1ms", "--schedule nightly", "--on start", "--memory 2g", "--keep -1", "--retention soon", "--format table", "--interval="} {
		assert.Equal(t, newFixture().run(t, append([]string{"watch"}, strings.Fields(wrong)...)...), 125, wrong)
	}
}
