package commands

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

func TestCreateOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want capture.Options
	}{
		{"container", []string{"web"}, capture.Options{Container: "web"}},
		{"name", []string{"web", "before"}, capture.Options{Container: "web", Name: "before"}},
		{
			"everything",
			[]string{
				"-m", "why", "--tag", "a", "--tag", "b,c", "--meta", "k=v=w", "--meta", "x/y=z", "--trigger", "run_end",
				"--run-id", "r", "--step-id", "s", "--group", "g", "--pin", "--reuse", "--no-pause", "web", "before",
			},
			capture.Options{
				Container: "web", Name: "before", Description: "why", Tags: []string{"a", "b,c"},
				Meta: map[string]string{"k": "v=w", "x/y": "z"}, Trigger: labels.TriggerRunEnd,
				RunID: "r", StepID: "s", Group: "g", Pinned: true, Reuse: true, NoPause: true,
			},
		},
		{"pause the target", []string{"--pause=target", "web"}, capture.Options{Container: "web", Pause: capture.PauseTarget}},
		{"old spelling", []string{"--pause=false", "web"}, capture.Options{Container: "web", Pause: capture.PauseNone}},
		{"old default", []string{"--pause=true", "web"}, capture.Options{Container: "web", Pause: capture.PauseAll}},
		{"the value apart", []string{"--pause", "none", "web"}, capture.Options{Container: "web", Pause: capture.PauseNone}},
		{"the value apart, behind", []string{"web", "--pause", "target", "before"}, capture.Options{Container: "web", Name: "before", Pause: capture.PauseTarget}},
		{
			"volumes",
			[]string{"--volume", "a", "--volume", "b", "--exclude-volume", "c", "web"},
			capture.Options{Container: "web", Volumes: capture.VolumeChoice{Only: []string{"a", "b"}, Exclude: []string{"c"}}},
		},
		{"no volumes", []string{"--no-volumes", "web"}, capture.Options{Container: "web", Volumes: capture.VolumeChoice{None: true}}},
		{"expires in", []string{"--expires", "1w2d", "web"}, capture.Options{Container: "web", Expires: noon.Add(9 * 24 * time.Hour)}},
		{"expires at", []string{"--expires", "2026-03-14T14:00:00+01:00", "web"}, capture.Options{Container: "web", Expires: noon.Add(time.Hour)}},
		{"expires on", []string{"--expires", "2026-03-15", "web"}, capture.Options{Container: "web", Expires: noon.Add(12 * time.Hour)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.engine.created.Snapshot = firstSnapshot()
			assert.Equal(t, f.run(t, append([]string{"create"}, tc.args...)...), 0, f.stderr.String())
			assert.DeepEqual(t, f.engine.create, tc.want)
			assert.Equal(t, f.stdout.String(), string(firstID)+"\n")
			assert.Equal(t, f.stderr.String(), "")
		})
	}
}

func TestCreateRefusesWithoutAskingTheEngine(t *testing.T) {
	for _, tc := range []struct {
		name, args, message string
		status              int
	}{
		{"no container", "create", "requires at least 1 and at most 2 arguments", 125},
		{"three arguments", "create a b c", "requires at least 1 and at most 2 arguments", 125},
		{"empty container", "create ''", "container name cannot be empty", 1},
		{"empty name", "create web ''", "invalid snapshot name", 1},
		{"illegal name", "create web a/b", "invalid snapshot name", 1},
		{"long name", "create web " + strings.Repeat("a", 200), "invalid snapshot name", 1},
		{"name like an ID", "create web " + string(firstID), "reads like a snapshot ID", 1},
		{"unknown option", "create --nope web", "unknown flag: --nope", 125},
		{"unknown trigger", "create --trigger nope web", "use one of manual,", 125},
		{"meta without value", "create --meta k web", "use key=value", 125},
		{"a part of more than all", "create --check-fraction 1.5 web", `for "--check-fraction" flag: use a number from 0 to 1`, 125},
		{"all and a part", "create --full --check-fraction 0 web", "conflicting options: --full and --check-fraction", 125},
		{"meta with an illegal key", "create --meta =v web", `for "--meta" flag: invalid key`, 125},
		{"pause something else", "create --pause=some web", "use one of all, target, none", 125},
		{"pause without a value", "create web --pause", "flag needs an argument: --pause: use one of all, target, none", 125},
		{"a container for a value", "create --pause web", `invalid argument "web" for "--pause" flag: use one of all, target, none`, 125},
		{"pause or not", "create --pause=target --no-pause web", "--no-pause and --pause=target", 125},
		{"volumes or not", "create --volume a --no-volumes web", "--no-volumes and --volume", 125},
		{"empty tag", "create --tag= web", `"" for "--tag" flag: it is empty`, 125},
		{"expired", "create --expires 2026-03-14 web", "is not in the future", 125},
		{"no time", "create --expires soon web", "neither a duration", 125},
		{"broken template", "create --format {{ web", "--format", 125},
		{"unknown progress", "create --progress loud web", "use one of auto, tty, plain, quiet, json", 125},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			args := strings.Fields(tc.args)
			for i, arg := range args {
				args[i] = strings.Trim(arg, "'")
			}
			assert.Equal(t, f.run(t, args...), tc.status)
			assert.Assert(t, is.Contains(f.stderr.String(), tc.message))
			assert.Equal(t, f.stdout.String(), "")
			assert.Equal(t, f.engine.calls, 0)
		})
	}
}

func TestWrongOptionsShowTheUsage(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "create", "--nope", "web"), 125)
	assert.Equal(t, f.stderr.String(), `unknown flag: --nope

Usage:  docker snapshot create [OPTIONS] [CONTAINER] [NAME]

Run 'docker snapshot create --help' for more information
`)
}

func TestCreateByTemplate(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot(), Frozen: 120 * time.Millisecond}
	assert.Equal(t, f.run(t, "create", "--format", "{{.Container}} {{.Status}} {{.Size}} {{json .Size}} {{.FrozenMS}} {{.Volumes}}", "web"), 0)
	assert.Equal(t, f.stdout.String(), "web created 4.235MB 4234574 120 data\n")
}

func TestAnIncompleteSnapshotIsPrintedAndTold(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot(), Incomplete: true}
	f.engine.events = []plan.Event{{Level: plan.LevelWarning, Phase: "volumes", Text: "/data/socket is lost"}}
	assert.Equal(t, f.run(t, "create", "web"), 3)
	assert.Equal(t, f.stdout.String(), string(firstID)+"\n")
	assert.Equal(t, f.stderr.String(), "WARNING: /data/socket is lost\nsnapshot before ("+string(firstID)+") is incomplete: see the warnings\n")
}

func TestASnapshotThatContradictsEarlierOnesIsTold(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot(), Contradicted: true}
	assert.Equal(t, f.run(t, "create", "--check-fraction", "0.5", "web"), 3)
	assert.Equal(t, f.stdout.String(), string(firstID)+"\n")
	assert.Equal(t, f.stderr.String(), "snapshot "+string(firstID)+" holds what is in the volumes, but earlier ones may be damaged: see the warnings\n")
}

func TestAnIncompleteSnapshotIsOneJSONLine(t *testing.T) {
	f := newFixture()
	f.engine.created = capture.Created{Snapshot: firstSnapshot(), Incomplete: true}
	f.engine.events = []plan.Event{
		{Level: plan.LevelWarning, Text: "/data/socket is lost"}, {Level: plan.LevelNote, Text: "by the way"},
	}
	assert.Equal(t, f.run(t, "create", "--format", "json", "web"), 3)
	assert.Equal(t, strings.Count(f.stdout.String(), "\n"), 1)
	assert.Assert(t, is.Contains(f.stdout.String(), `"incomplete":true`))
	assert.Assert(t, is.Contains(f.stdout.String(), `"warnings":["/data/socket is lost"]`))
}

func TestFailuresAreJSONToo(t *testing.T) {
	for _, args := range [][]string{{"create", "web"}, {"restore", "web"}} {
		t.Run(args[0], func(t *testing.T) {
			f := newFixture()
			f.engine.err = errors.New("commit container web: no <such> driver")
			assert.Equal(t, f.run(t, append(args, "--format", "json")...), 1)
			assert.Equal(t, f.stdout.String(), `{"status":"error","code":"internal","error":"commit container web: no <such> driver","problems":[]}`+"\n")
			assert.Equal(t, f.stderr.String(), "commit container web: no <such> driver\n")
		})
	}
}

func TestAnEngineOutOfReach(t *testing.T) {
	for _, args := range [][]string{{"create", "web"}, {"restore", "web"}, {"ls"}, {"rm", "web"}, {"inspect", "web"}} {
		t.Run(args[0], func(t *testing.T) {
			f := newFixture()
			f.connect = errors.New("out of reach")
			assert.Equal(t, f.run(t, args...), 1)
			assert.Equal(t, f.stdout.String(), "")
			assert.Equal(t, f.stderr.String(), "out of reach\n")
		})
	}
}

func TestHelpAndVersionNeedNoEngine(t *testing.T) {
	f := newFixture()
	f.connect = errors.New("out of reach")
	for _, args := range [][]string{{"--help"}, {"create", "--help"}, {"version"}} {
		assert.Equal(t, f.run(t, args...), 0)
	}
}

// The sweep comes after the answer, and only if it is time for it.
func TestCreateSweepsAfterTheAnswer(t *testing.T) {
	for _, due := range []bool{false, true} {
		f := newFixture()
		f.engine.created = capture.Created{Snapshot: firstSnapshot(), SweepDue: due}
		f.engine.stdout = f.stdout.String
		assert.Equal(t, f.run(t, "create", "web"), 0)
		assert.Equal(t, f.engine.swept, map[bool]string{true: string(firstID) + "\n"}[due])
	}
}
