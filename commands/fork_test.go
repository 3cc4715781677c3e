package commands

import (
	"context"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// forkingEngine answers fork.
type forkingEngine struct {
	fakeEngine
	asked copies.ForkOptions
	made  []build.Restored
}

func (e *forkingEngine) Fork(_ context.Context, o copies.ForkOptions, _ plan.Progress) ([]build.Restored, error) {
	e.asked = o
	return e.made, nil
}

func TestForkPrintsALineForEachCopy(t *testing.T) {
	first, second := restoredCopy(), restoredCopy()
	first.Ports = []build.Port{{Container: "80/tcp", HostIP: "0.0.0.0", HostPort: "32768"}}
	second.ContainerID, second.Name = "second", "try-2"
	f := newFixture()
	eng := &forkingEngine{made: []build.Restored{first, second}}
	f.evil = eng
	assert.Equal(t, f.run(t, "fork", "-n", "2", "--name", "try", "--wait", "--no-start=false", "web"), 0, f.stderr.String())
	assert.Equal(t, f.stdout.String(), containerID+"\nsecond\n")
	want := copies.ForkOptions{Count: 2, RestoreOptions: runconfig.RestoreOptions{
		Snapshot: "web", Name: "try", Waiting: runconfig.Waiting{Wait: true, Settle: runconfig.DefaultSettle},
	}}
	eng.asked.Env, eng.asked.Labels = nil, nil
	assert.DeepEqual(t, eng.asked, want)

	f = newFixture()
	f.evil = eng
	assert.Equal(t, f.run(t, "fork", "--format", "{{.RestoredContainer}} {{.Ports}}", "web"), 0)
	assert.Equal(t, f.stdout.String(), "web-58979a [{80/tcp 0.0.0.0 32768}]\ntry-2 []\n")

	second.Incomplete = true
	eng.made = []build.Restored{first, second}
	f = newFixture()
	f.evil = eng
	assert.Equal(t, f.run(t, "fork", "web"), 3)
	assert.Equal(t, withoutState(f.stderr.String()), "the copies are incomplete: see the warnings\n")
}

func TestForkRefusesWithoutAskingTheEngine(t *testing.T) {
	for _, tc := range []struct {
		message string
		args    []string
	}{
		{"requires 1 argument", nil},
		{"invalid --count 0: use a number from 1 to 256", []string{"-n", "0", "web"}},
		{"invalid --count 257", []string{"-n", "257", "web"}},
		{"--start and --no-start", []string{"--start", "--no-start", "web"}},
		{"--wait and --no-start", []string{"--wait", "--no-start", "web"}},
		{"--settle goes with --wait", []string{"--settle", "1s", "web"}},
		{"--network host", []string{"--network", "host", "--network", "x", "web"}},
	} {
		f := newFixture()
		assert.Equal(t, f.run(t, append([]string{"fork"}, tc.args...)...), 125, tc.message)
		assert.Assert(t, is.Contains(f.stderr.String(), tc.message))
		assert.Equal(t, f.engine.calls, 0)
	}
}
