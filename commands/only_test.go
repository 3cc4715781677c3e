package commands

import (
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

func TestWhatGoesBackAloneIsRefusedWithoutAskingTheEngine(t *testing.T) {
	for want, args := range map[string][]string{
		"--live goes with --only":                      {"--replace", "--live", "x"},
		"--live and --only rootfs":                     {"--replace", "--live", "--only", "rootfs", "x"},
		"--live and --no-safety":                       {"--replace", "--live", "--only", "data", "--no-safety", "x"},
		"--live and --wait":                            {"--replace", "--live", "--only", "data", "--wait", "x"},
		"--only goes with --replace":                   {"--only", "data", "x"},
		"name a volume, where it is mounted":           {"--replace", "--only", "", "x"},
		"--only and --volume":                          {"--replace", "--only", "data", "--volume", "data", "x"},
		"--env, and --only without rootfs":             {"--replace", "--only", "data", "--env", "A=1", "x"},
		"--no-start, and --only without rootfs: the c": {"--replace", "--only", "data", "--no-start", "x"},
	} {
		f := newFixture()
		assert.Equal(t, f.run(t, append([]string{"restore"}, args...)...), 125)
		assert.Assert(t, is.Contains(f.stderr.String(), want))
		assert.Equal(t, f.engine.calls, 0)
	}
}

func TestWhatWentBackAloneIsTakenBackAlone(t *testing.T) {
	safety := firstSnapshot()
	eng := &replacingEngine{replaced: replace.Result{Restored: build.Restored{Name: "web", Snapshot: safety}, Safety: &safety}}
	f, err := runReplacing(t, eng, nil, "restore", "--replace", "--force", "--only", "data", "--only", "/var/my logs", "x")
	assert.NilError(t, err)
	assert.DeepEqual(t, eng.options.Only, []string{"data", "/var/my logs"})
	assert.Equal(t, withoutState(f.stderr.String()), "To take it back: docker snapshot restore --replace --force --only data --only '/var/my logs' "+string(firstID)+"\n")
	f, err = runReplacing(t, eng, nil, "restore", "--replace", "--force", "--live", "--only", "data", "x")
	assert.NilError(t, err)
	assert.Assert(t, eng.options.Live && is.Contains(f.stderr.String(), "--force --live --only data ")().Success())
	_, err = runReplacing(t, eng, nil, "restore", "--replace", "--force", "--only", "rootfs", "--env", "A=1", "x")
	assert.NilError(t, err)
}
