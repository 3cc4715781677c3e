package commands

import (
	"encoding/json"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func TestInspectPrintsWhatThereIsAndFailsForTheRest(t *testing.T) {
	f := newFixture()
	f.engine.list = []catalog.Snapshot{firstSnapshot(), secondSnapshot()}
	assert.Equal(t, f.run(t, "inspect", "before", "gone", string(secondID)), 1)
	golden.Assert(t, f.stdout.String(), "inspect.golden")
	assert.Equal(t, f.stderr.String(), "no such snapshot: gone\n'docker snapshot ls' lists the snapshots there are\n")
	var got []map[string]any
	assert.NilError(t, json.Unmarshal(f.stdout.Bytes(), &got))
	assert.Equal(t, len(got), 2)
}

func TestInspectByTemplate(t *testing.T) {
	for _, tc := range []struct{ name, format, want string }{
		{"field", "{{.ID}}", string(firstID)},
		{"list", "{{.Tags}}", "keep,release"},
		{"map", "{{.Meta.ticket}} {{json .Meta}}", `42 {"by":"ann","ticket":"42"}`},
		{"configuration", "{{.Config.Env}} {{json .Config.Labels}} {{.HostConfig.Memory}}", `[A=1] {"tier":"front"} 67108864`},
		{"a number that is too large for floats", "{{.Config.StopTimeout}}", "12345678901234567890"},
		{"what this program does not know", "{{.HostConfig.FromTheFuture.a}}", "1"},
		{"mounts", "{{range .Mounts}}{{.Destination}}={{.Captured}} {{end}}", "/data=true /srv=false "},
		{"json", "json", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture()
			f.engine.list = []catalog.Snapshot{firstSnapshot()}
			assert.Equal(t, f.run(t, "inspect", "--format", tc.format, "before"), 0, f.stderr.String())
			if tc.format == "json" {
				assert.Assert(t, json.Valid(f.stdout.Bytes()))
				assert.Assert(t, is.Contains(f.stdout.String(), `{"id":"`))
				return
			}
			assert.Equal(t, f.stdout.String(), tc.want+"\n")
		})
	}
}

func TestInspectOfNothingThatExists(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "inspect", "gone"), 1)
	assert.Equal(t, f.stdout.String(), "[]\n")
}

func TestInspectRefusesBrokenTemplates(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "inspect", "--format", "{{", "before"), 125)
}

// A snapshot without the content of a volume has files nevertheless.
func TestInspectFilesWithoutVolumes(t *testing.T) {
	for _, tc := range []struct{ args, says string }{
		{string(secondID), "snapshot " + string(secondID) + " holds the content of no volume: rootfs after it lists its root filesystem"},
		{string(secondID) + " pg", "snapshot " + string(secondID) + " holds the content of no such volume"},
	} {
		f := newFixture()
		f.engine.list = []catalog.Snapshot{secondSnapshot()}
		assert.Equal(t, f.run(t, append([]string{"inspect", "--files"}, strings.Fields(tc.args)...)...), 1)
		assert.Assert(t, strings.Contains(f.stderr.String(), tc.says), f.stderr.String())
	}
}
