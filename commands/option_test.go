package commands

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
)

// Flags of one command do not reach another of the same tree.
func TestCommandsDialWithTheirOwnOptions(t *testing.T) {
	f := newFixture()
	f.engine.created.Snapshot, f.engine.restored = firstSnapshot(), restoredCopy()
	var dialled volumeOptions
	d := f.deps()
	d.engine = func(o volumeOptions) (engine, error) {
		dialled = o
		return f.engine, nil
	}
	root := newRoot(d)
	root.SilenceErrors, root.SilenceUsage = true, true
	for _, tc := range []struct {
		args []string
		want volumeOptions
	}{
		{[]string{"create", "--store", "mine", "--lock-timeout", "5s", "web"}, volumeOptions{"mine", 5 * time.Second}},
		{[]string{"restore", "--store", "yours", "web"}, volumeOptions{"yours", time.Minute}},
		{[]string{"rm", "web"}, volumeOptions{"", time.Minute}},
		{[]string{"inspect", "web"}, volumeOptions{"", time.Minute}},
		{[]string{"ls"}, volumeOptions{"", time.Minute}},
	} {
		root.SetArgs(tc.args)
		_ = root.ExecuteContext(t.Context()) // whether it finds something does not matter
		assert.Equal(t, dialled, tc.want, "%v", tc.args)
		dialled = volumeOptions{}
	}
}

func TestAnOptionWithoutItsValueNamesWhatItTakes(t *testing.T) {
	for option, want := range map[string]string{
		"--timeout": "use a number of seconds",
		"--volumes": "use one of new, shared, none",
		"--store":   `invalid volume name ""`,
		"--name":    "flag needs an argument: --name\n",
	} {
		f := newFixture()
		assert.Equal(t, f.run(t, "restore", "x", option), statusUsage)
		assert.Assert(t, is.Contains(f.stderr.String(), want))
	}
}

func TestTimeoutLeavesTheContainersOwn(t *testing.T) {
	for text, want := range map[string]*int{"-1": nil, "0": new(0), "12": new(12)} {
		got, err := parseStopTimeout(text)
		assert.NilError(t, err)
		assert.DeepEqual(t, got, want)
	}
}
