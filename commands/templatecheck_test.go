package commands

import (
	"maps"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
)

// Every command with --format refuses a template before it asks the engine for anything.
func TestATemplateWithoutSuchAFieldIsRefusedFirst(t *testing.T) {
	seen := 0
	for path, cmd := range commandsWithFormat(newRoot(newFixture().deps()), "") {
		for _, template := range []string{"{{.Nope}}", "x {{if .Nope}}y{{end}}", "table {{.Nope}}"} {
			f := newFixture()
			args := append(strings.Fields(path), "--format", template)
			if cmd == "" && strings.HasPrefix(template, "table") {
				continue
			}
			assert.Equal(t, f.run(t, append(args, "x", "y")...), 125, path)
			assert.Assert(t, is.Contains(f.stderr.String(), "the result has no field Nope; --format json shows its fields"), path)
			assert.Equal(t, f.engine.calls, 0)
			seen++
		}
	}
	assert.Assert(t, seen > 30, "%d", seen)
}

// commandsWithFormat are the commands that take a template: the kind of the option tells lists.
func commandsWithFormat(cmd *cobra.Command, path string) map[string]string {
	all := map[string]string{}
	for _, below := range cmd.Commands() {
		maps.Copy(all, commandsWithFormat(below, path+" "+below.Name()))
	}
	if flag := cmd.Flags().Lookup(formatFlag); flag != nil && strings.Contains(flag.Usage, "Go template") {
		all[path] = map[bool]string{true: "list"}[strings.Contains(flag.Usage, "table")]
	}
	return all
}

func TestTemplatesThatFit(t *testing.T) {
	for template, results := range map[string][]any{
		"{{.ID}} {{.Status}} {{range .VolumeChanges}}{{.Volume}}{{end}} {{(index .Plan 0).Op}}":      {restoreResult{}},
		"{{with .Changes}}{{range .List}}{{.Path}}{{end}}{{end}} {{.Meta.ticket}} {{index .Tags 5}}": {createResult{}},
		"{{.Reason}}": {createResult{}, skippedResult{}},
		"{{json .Config.Env}} {{.id}} {{.Config.No.Such}} {{.meta.ticket}}": {details{}, file{}},
		"{{.SHA256}}": {details{}, file{}},
		"{{range .Snapshots}}{{.Number}}{{end}} {{.run_id}}": {runDetails{}},
	} {
		_, err := parsePrinter(template, results)
		assert.Check(t, err, template)
	}
	for template, results := range map[string][]any{
		"{{range .VolumeChanges}}{{.Nope}}{{end}}":                {restoreResult{}},
		"{{if .Incomplete}}ok{{else}}{{.Nope}}{{end}}":            {createResult{}},
		"{{with .Changes}}{{range .List}}{{.Nope}}{{end}}{{end}}": {createResult{}, skippedResult{}},
		"{{.nope}}": {details{}, file{}},
	} {
		_, err := parsePrinter(template, results)
		assert.Check(t, is.ErrorContains(err, "no field"), template)
	}
}
