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
		"--no-safety, and --replace of volumes alone":  {"--replace", "--live", "--only", "data", "--no-safety", "x"},
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

func TestPartsAndLiveReachTheEngine(t *testing.T) {
	eng := &replacingEngine{replaced: replace.Result{Restored: build.Restored{Name: "web", Snapshot: firstSnapshot()}}}
	_, err := runReplacing(t, eng, nil, "restore", "--replace", "--force", "--live", "--only", "data", "--only", "/var/my logs", "x")
	assert.NilError(t, err)
	assert.Assert(t, eng.options.Live)
	assert.DeepEqual(t, eng.options.Only, []string{"data", "/var/my logs"})
	_, err = runReplacing(t, eng, nil, "restore", "--replace", "--force", "--only", "rootfs", "--env", "A=1", "x")
	assert.NilError(t, err)
}
