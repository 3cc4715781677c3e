package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docker/cli/cli/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/commands"
)

// Every script runs on both engines in the full level, and on at least one in the quick level. So a flag that a script uses is
// exercised as often, unless the line has a condition.
func TestEveryCommandAndFlagIsExercised(t *testing.T) {
	cli, err := command.NewDockerCli()
	assert.NilError(t, err)
	root := commands.NewRoot(cli, "e2e", nil, nil)
	var words [][]string
	for _, pattern := range []string{"testdata/*.txtar", "*_test.go"} {
		files, err := filepath.Glob(pattern)
		assert.NilError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			assert.NilError(t, err)
			words = append(words, calls(string(text))...)
		}
	}
	used := make(map[string]bool)
	for _, call := range words {
		markUsed(root, call, used)
	}
	visit(root, func(c *cobra.Command) {
		assert.Check(t, used[c.CommandPath()] || c.HasSubCommands(), "no script calls %s", c.CommandPath())
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			path := c.CommandPath() + " --" + f.Name
			assert.Check(t, used[path] || f.Hidden || f.Name == "help", "no script uses %s", path)
		})
	})
}

// visit calls f for every command that users see.
func visit(c *cobra.Command, f func(c *cobra.Command)) {
	if c.Hidden {
		return
	}
	f(c)
	for _, sub := range c.Commands() {
		visit(sub, f)
	}
}

var (
	// passive matches lines of scripts that call nothing, or call it on one engine only.
	passive = regexp.MustCompile(`^\s*(#|//|\[!?(debian|moby)\]|(! )?(stdout|stderr|cmp)\b|(exec |! exec )?grep\b)`)
	// called matches the beginning of a call, in a script or in Go.
	called = regexp.MustCompile(`(\bdocker(-snapshot)?["(, ]+snapshot|\("snapshot"|\{"snapshot"|\$PLUGIN|^env [A-Z]+='(docker snapshot )?)["', ]+`)
	// ends matches what ends a call's own arguments.
	ends = regexp.MustCompile(`(^|\s)(--|[|;&]+|2?>\S*)(\s|$)`)
)

// calls returns the arguments of the calls of docker snapshot in a script or a Go file.
func calls(text string) (all [][]string) {
	if strings.Contains(text, "\n[debian] skip") || strings.Contains(text, "\n[moby] skip") {
		return nil
	}
	for line := range strings.Lines(text) {
		if passive.MatchString(line) {
			continue
		}
		starts := called.FindAllStringIndex(line, -1)
		for i, start := range starts {
			end := len(line)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			arguments := line[start[1]:end]
			if at := ends.FindStringIndex(arguments); at != nil {
				arguments = arguments[:at[0]]
			}
			all = append(all, strings.FieldsFunc(arguments, func(r rune) bool { return strings.ContainsRune(" \t\n\"',(){}", r) }))
		}
	}
	return all
}

// markUsed marks the command that is called, and its flags.
func markUsed(root *cobra.Command, call []string, used map[string]bool) {
	c := root
	for _, word := range call {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(name, "--"):
			used[c.CommandPath()+" "+name] = true
		case strings.HasPrefix(name, "-"):
			for _, letter := range name[1:] {
				if f := c.Flags().ShorthandLookup(string(letter)); f != nil {
					used[c.CommandPath()+" --"+f.Name] = true
				}
			}
		default:
			at := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name || sub.HasAlias(name) })
			if at >= 0 {
				c = c.Commands()[at]
			}
		}
	}
	used[c.CommandPath()] = true
}
