package commands

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/cli/cli/streams"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// play shows a story: events, and seconds that pass between them.
func play(d display, c *fakeClock, story ...any) {
	for _, part := range story {
		switch part := part.(type) {
		case plan.Event:
			d.show(part)
		case time.Duration:
			c.advance(part)
		}
	}
	d.close()
}

func status(phase string) plan.Event { return plan.Event{Phase: phase, Text: "doing " + phase} }

func bytesDone(current, total, files int64) plan.Event {
	return plan.Event{Phase: "volumes", Text: "reading volumes", Current: current, Total: total, Files: files}
}

func warning(text string) plan.Event {
	return plan.Event{Level: plan.LevelWarning, Phase: "volumes", Text: text}
}

func note(text string) plan.Event {
	return plan.Event{Level: plan.LevelNote, Phase: "inspect", Text: text}
}

func TestPlainProgress(t *testing.T) {
	const mb = 1_000_000
	for _, tc := range []struct {
		name  string
		story []any
		want  []string
	}{
		{"nothing", nil, nil},
		{"quick phases leave no trace", []any{status("inspect"), 900 * time.Millisecond, status("commit"), 999 * time.Millisecond}, nil},
		{"a long phase is told while it lasts", []any{status("commit"), time.Second}, []string{"doing commit  1.0s"}},
		{
			"and again every ten seconds",
			[]any{status("commit"), 22 * time.Second, status("tag")},
			[]string{"doing commit  1.0s", "doing commit  11.0s", "doing commit  21.0s"},
		},
		{
			"each phase has its own time",
			[]any{status("commit"), 2 * time.Second, status("tag"), 2 * time.Second},
			[]string{"doing commit  1.0s", "doing tag  1.0s"},
		},
		{"notes are told at once", []any{status("inspect"), note("good to know")}, []string{"good to know"}},
		{"warnings are told at once", []any{status("inspect"), warning("careful")}, []string{"WARNING: careful"}},
		{
			"bytes, files, rate and time left",
			[]any{bytesDone(0, 100*mb, 0), 500 * time.Millisecond, bytesDone(10*mb, 100*mb, 7), 500 * time.Millisecond, bytesDone(30*mb, 100*mb, 9), 10 * time.Second},
			[]string{"reading volumes  10MB of 100MB  7 files  1.0s", "reading volumes  30MB of 100MB  9 files  11.0s  1.9MB/s  36.8s left"},
		},
		{
			"bytes of which nobody knows how many there will be",
			[]any{bytesDone(mb, 0, 0), 500 * time.Millisecond, bytesDone(2*mb, 0, 0), 500 * time.Millisecond},
			[]string{"reading volumes  2MB  1.0s  1MB/s"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			d, err := f.deps().progress(progressOptions{})
			assert.NilError(t, err)
			play(d, f.clock, tc.story...)
			f.clock.advance(time.Hour) // a closed display says nothing more
			assert.Equal(t, len(f.clock.timers), 0)
			assert.Equal(t, f.stderr.String(), strings.Join(append(tc.want, ""), "\n"))
		})
	}
}

func TestTTYProgressUsesOneLine(t *testing.T) {
	f := newFixture()
	d, err := f.deps().progress(progressOptions{mode: progressTTY})
	assert.NilError(t, err)
	play(d, f.clock, status("inspect"), 900*time.Millisecond, status("commit"), 1100*time.Millisecond, warning("careful"), 100*time.Millisecond)
	const erase = "\r\x1b[K"
	assert.Equal(t, f.stderr.String(), erase+"doing commit  1.0s"+erase+"doing commit  1.1s"+
		erase+"WARNING: careful\n"+erase+"doing commit  1.2s"+erase)
}

func TestTTYProgressLeavesNoTraceOfQuickCommands(t *testing.T) {
	f := newFixture()
	d, err := f.deps().progress(progressOptions{mode: progressTTY})
	assert.NilError(t, err)
	play(d, f.clock, status("inspect"), 500*time.Millisecond, status("commit"), 500*time.Millisecond)
	assert.Equal(t, f.stderr.String(), "")
}

func TestProgressModes(t *testing.T) {
	const (
		jsonStatus  = `{"level":"status","phase":"volumes","text":"reading volumes","current":1,"total":2,"files":3,"timestamp":"2026-03-14T12:00:00Z"}` + "\n"
		jsonWarning = `{"level":"warning","phase":"volumes","text":"<careful>","current":0,"total":0,"files":0,"timestamp":"2026-03-14T12:00:02Z"}` + "\n"
		plain       = "reading volumes  1B of 2B  3 files  1.0s  0B/s\n"
		warn        = "WARNING: <careful>\n"
	)
	for _, tc := range []struct {
		name                string
		options             progressOptions
		environment, config string
		want                string
	}{
		{name: "auto without a terminal", want: plain + warn},
		{name: "plain", options: progressOptions{mode: "plain"}, want: plain + warn},
		{name: "quiet", options: progressOptions{mode: "quiet"}, want: warn},
		{name: "json", options: progressOptions{mode: "json"}, want: jsonStatus + jsonWarning},
		{name: "option -q", options: progressOptions{quiet: true}, want: warn},
		{name: "json and -q", options: progressOptions{mode: "json", quiet: true}, want: jsonWarning},
		{name: "environment", environment: "quiet", config: "json", want: warn},
		{name: "config", config: "json", want: jsonStatus + jsonWarning},
		{name: "option over all", options: progressOptions{mode: "json"}, environment: "quiet", config: "plain", want: jsonStatus + jsonWarning},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.environment = map[string]string{"DOCKER_SNAPSHOT_PROGRESS": tc.environment}
			f.config = map[string]string{"progress": tc.config}
			d, err := f.deps().progress(tc.options)
			assert.NilError(t, err)
			play(d, f.clock, bytesDone(1, 2, 3), 2*time.Second, warning("<careful>"))
			assert.Equal(t, strings.ReplaceAll(f.stderr.String(), "  0B/s", ""), strings.ReplaceAll(tc.want, "  0B/s", ""))
		})
	}
}

func TestABadProgressSettingIsNamed(t *testing.T) {
	for _, args := range [][]string{{"create", "web"}, {"restore", "web"}, {"ls"}, {"rm", "web"}} {
		t.Run(args[0], func(t *testing.T) {
			f := newFixture()
			f.config = map[string]string{"progress": "loud"}
			assert.Equal(t, f.run(t, args...), 1)
			assert.Equal(t, f.engine.calls, 0)
			assert.Equal(t, f.stderr.String(),
				"invalid value \"loud\" of plugins.snapshot.progress in /home/me/.docker/config.json: use one of auto, tty, plain, quiet, json\n")
		})
	}
}

func TestLinesFitTheTerminal(t *testing.T) {
	assert.Equal(t, fit("short", 80), "short")
	assert.Equal(t, fit("short", 0), "short")
	assert.Equal(t, fit("too long for this", 8), "too lon")
	assert.Equal(t, fit("ééééé", 4), "é")
}

// Events come from other goroutines than timers do; the race detector watches.
func TestDisplaysAreSafeForConcurrentUse(t *testing.T) {
	var out bytes.Buffer
	guarded := &lockedWriter{w: &out}
	now := newFixture().clock.now
	fast := clock{now: now, after: func(_ time.Duration, f func()) func() bool { return afterFunc(0, f) }}
	for _, d := range []display{
		&liveDisplay{out: guarded, clock: fast, line: plainLine{guarded}, interval: time.Millisecond},
		&liveDisplay{out: guarded, clock: fast, line: &ttyLine{out: terminal{streams.NewOut(guarded)}}, interval: time.Millisecond},
		&jsonDisplay{out: guarded, now: now},
	} {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 50 {
					d.show(status(fmt.Sprint(i, n)))
					d.show(warning("w"))
				}
			})
		}
		all.Wait()
		d.close()
	}
	assert.Equal(t, strings.Count(out.String(), "WARNING: w")+strings.Count(out.String(), `"warning"`), 600)
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
