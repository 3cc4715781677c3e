package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// calls has, for each command with --format, arguments with which it asks the engine for something. A command that
// needs no engine has none.
var calls = map[string]string{
	"annotate":     "--pin web:latest",
	"cat":          "--output nowhere web:latest log",
	"create":       "web",
	"df":           "",
	"diff":         "web:latest",
	"history":      "web",
	"fork":         "web:latest",
	"promote":      "--force web-copy",
	"undo":         "--force web",
	"inspect":      "web:latest",
	"ls":           "",
	"protect":      "-",
	"prune":        "",
	"recover":      "web",
	"restore":      "web:latest",
	"rm":           "web:latest",
	"runs":         "",
	"runs inspect": "42",
	"runs ls":      "",
	"verify":       "web:latest",
	"version":      "-",
	"watch":        "",
}

// formatting are the commands that have --format, by their names below "docker snapshot".
func formatting(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	root := newRoot(newFixture().deps())
	found := map[string]*cobra.Command{}
	for _, cmd := range commandsOf(root) {
		if cmd.Flags().Lookup(formatFlag) != nil {
			found[strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")] = cmd
		}
	}
	return found
}

// With --format json every command says on stdout why it fails, whatever it fails for. The golden file has it all.
func TestEveryCommandFailsInJSON(t *testing.T) {
	found := formatting(t)
	for name := range calls {
		assert.Check(t, found[name] != nil, "there is no command %s with --format", name)
	}
	var all strings.Builder
	for name := range found {
		_, known := calls[name]
		assert.Assert(t, known, "add %q to calls", name)
		assert.Assert(t, printed[name] != nil, "add %q to printed, in json_test.go", name)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		cases := []struct {
			args   string
			status int
			code   errorCode
		}{{name + " --no-such-option --format json", 125, codeUsage}, {name + " --format=json --no-such-option", 125, codeUsage}}
		if calls[name] != "-" {
			cases = append(cases, struct {
				args   string
				status int
				code   errorCode
			}{name + " --format json " + calls[name], 1, codeUnreachable})
		}
		for _, tc := range cases {
			f := newFixture()
			f.connect = unreachable{errors.New("out of reach")}
			assert.Equal(t, f.run(t, strings.Fields(tc.args)...), tc.status, tc.args)
			var said failure
			assert.NilError(t, json.Unmarshal(f.stdout.Bytes(), &said), "%s prints %q", tc.args, f.stdout.String())
			assert.Equal(t, said.Code, string(tc.code), tc.args)
			assert.Equal(t, said.Status, "error")
			assert.Equal(t, said.Error, strings.TrimSuffix(f.stderr.String(), "\n"), "stderr says something else")
			fmt.Fprintf(&all, "$ docker snapshot %s\n%s", tc.args, f.stdout.String())

			f = newFixture()
			f.connect = unreachable{errors.New("out of reach")}
			f.run(t, strings.Fields(strings.Replace(strings.Replace(tc.args, "--format json", "", 1), "--format=json", "", 1))...)
			assert.Equal(t, f.stdout.String(), "", "%s without JSON", name)
		}
	}
	golden.Assert(t, all.String(), "json-failures.golden")
}

func TestWrongOptionsAreSeenInAnyOrder(t *testing.T) {
	for _, tc := range []struct {
		args string
		json bool
	}{
		{"create --format json", true}, // no container
		{"create web --bogus --format json", true},
		{"create web --bogus --format=json", true},
		{"create --bogus web --format json", true},
		{"create web --format json --message", true}, // without its value
		{"create web --trigger nonsense --format json", true},
		{"create web --bogus --message --format json", false}, // that is the message
		{"create web --bogus -- --format json", false},
		{"create web --bogus --format", false},
		{"create web --bogus --format json --format {{.ID}}", false},
		{"inspect --bogus -f json x", true},
		{"inspect --bogus -fjson x", true},
		{"ls --bogus -f json", false}, // that is a filter
		{"ls --last -1 --format json", true},
		{"ls --filter nonsense --format json", true},
		{"recover --purge web --format json", true},
		{"nonsense --format json", true},
		{"--bogus --format json", true},
		{"--bogus", false},
	} {
		t.Run(tc.args, func(t *testing.T) {
			f := newFixture()
			assert.Equal(t, f.run(t, strings.Fields(tc.args)...), 125)
			if !tc.json {
				assert.Equal(t, f.stdout.String(), "")
				return
			}
			var said failure
			assert.NilError(t, json.Unmarshal(f.stdout.Bytes(), &said), f.stdout.String())
			assert.Equal(t, said.Code, string(codeUsage))
		})
	}
}

func TestProblemsAreAList(t *testing.T) {
	f := newFixture()
	f.engine.err = &plan.ProblemsError{Problems: []plan.Problem{
		{Kind: plan.ProblemNoNetwork, Subject: "n", Text: "network n does not exist"},
		{Kind: plan.ProblemHostAccess, Subject: "privileged", Text: "it asks for all"},
	}}
	assert.Equal(t, f.run(t, "restore", "--format", "json", "web"), 1)
	golden.Assert(t, f.stdout.String(), "json-problems.golden")
}

// What goes on after an error prints one line for each argument, in their order.
func TestOneLineForEachArgument(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"rm --format json gone before " + string(secondID), "not_found pinned removed"},
		{"rm --force --format json gone before", "not_found removed"},
		{"inspect --format json gone before " + string(secondID), "not_found before "},
	} {
		t.Run(tc.args, func(t *testing.T) {
			f := newFixture()
			f.engine.list = []catalog.Snapshot{firstSnapshot(), secondSnapshot()}
			f.run(t, strings.Fields(tc.args)...)
			var got []string
			for line := range strings.Lines(f.stdout.String()) {
				var object struct{ Status, Code, Name string }
				assert.NilError(t, json.Unmarshal([]byte(line), &object), line)
				switch {
				case object.Code != "":
					got = append(got, object.Code)
				case object.Status != "":
					got = append(got, object.Status)
				default:
					got = append(got, object.Name)
				}
			}
			assert.Equal(t, strings.Join(got, " "), tc.want)
		})
	}
}
