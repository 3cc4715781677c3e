package commands

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
)

// visible lists the commands below docker that users see, the root included.
func visible(docker *cobra.Command) []*cobra.Command {
	root, _, _ := docker.Find([]string{Name})
	var all []*cobra.Command
	for _, cmd := range commandsOf(root) {
		if !cmd.Hidden {
			all = append(all, cmd)
		}
	}
	return all
}

// pathBelow is what users type after docker snapshot.
func pathBelow(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "docker "+Name))
}

func TestConventionsOfCommands(t *testing.T) {
	for _, cmd := range visible(newFixture().docker()) {
		t.Run(cmd.Name(), func(t *testing.T) {
			assert.Assert(t, cmd.Short != "")
			assert.Assert(t, cmd.Long != "" || cmd.Example != "")
			assert.Assert(t, cmd.Example != "")
			assert.Assert(t, cmd.DisableFlagsInUseLine)
			assert.Assert(t, cmd.ValidArgsFunction != nil)
			assert.Assert(t, cmd.Args != nil)
			assert.Assert(t, cmd.RunE != nil && cmd.Run == nil)
			assert.Assert(t, is.Contains(cmd.Use, " [OPTIONS]"))
			// Only the hook of the CLI's plugin package may exist: cobra runs the nearest.
			assert.Assert(t, cmd.PersistentPreRun == nil && cmd.PersistentPreRunE == nil)
			cmd.Flags().VisitAll(func(flag *pflag.Flag) {
				assert.Assert(t, flag.Usage != "", flag.Name)
				_, completes := cmd.GetFlagCompletionFunc(flag.Name)
				// Else it would take the word behind it for an argument.
				assert.Assert(t, flag.NoOptDefVal == "" || flag.Value.Type() == "bool", "%s takes a value only sometimes", flag.Name)
				assert.Assert(t, completes || flag.Value.Type() == "bool", flag.Name)
			})
		})
	}
}

func TestUnknownCommands(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "creat"), 125)
	assert.Assert(t, is.Contains(f.stderr.String(), "docker: unknown command: docker snapshot creat"))
	assert.Assert(t, is.Contains(f.stderr.String(), "Did you mean: docker snapshot cat, or docker snapshot create\n"))
	f = newFixture()
	assert.Equal(t, f.run(t, "nonsense"), 125)
	assert.Assert(t, !strings.Contains(f.stderr.String(), "Did you mean"))
}

func TestWrongArguments(t *testing.T) {
	for _, cmd := range visible(newFixture().docker()) {
		f := newFixture()
		f.connect = errors.New("not to be dialled")
		args := strings.Fields(strings.Repeat("one two three four ", 5))
		if slices.Contains([]string{"rm", "inspect", "verify", "exec"}, cmd.Name()) {
			args = nil
		}
		args = append(strings.Fields(pathBelow(cmd)), args...)
		assert.Equal(t, f.run(t, args...), 125, cmd.Name())
	}
}

func TestVersion(t *testing.T) {
	f := newFixture()
	assert.Equal(t, f.run(t, "version"), 0)
	assert.Assert(t, is.Regexp(`^docker snapshot version v1\.2\.3 \(go\S+, \w+/\w+\)\n$`, f.stdout.String()))
	whole := f.stdout.String()
	f = newFixture()
	assert.Equal(t, f.run(t, "--version"), 0)
	assert.Equal(t, f.stdout.String(), whole)
	f = newFixture()
	assert.Equal(t, f.run(t, "version", "--format", "{{.Version}}"), 0)
	assert.Equal(t, f.stdout.String(), "v1.2.3\n")
	f = newFixture()
	assert.Equal(t, f.run(t, "version", "--format", "json"), 0)
	assert.Assert(t, is.Contains(f.stdout.String(), `{"version":"v1.2.3",`))
}
