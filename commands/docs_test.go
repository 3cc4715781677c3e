package commands

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"
)

// reference is where the reference pages are, as golden files.
const reference = "../../docs/reference"

// The reference is made from the commands: go test ./commands -update.
func TestReferenceIsUpToDate(t *testing.T) {
	docker := newFixture().docker()
	pages := map[string]bool{}
	for _, cmd := range visible(docker) {
		name := pageName(cmd)
		pages[name] = true
		golden.Assert(t, page(cmd), filepath.Join(reference, name))
	}
	files, err := os.ReadDir(filepath.Join("testdata", reference))
	assert.NilError(t, err)
	for _, file := range files {
		assert.Assert(t, pages[file.Name()], "%s describes no command", file.Name())
	}
}

// pageName is the file that describes a command.
func pageName(cmd *cobra.Command) string {
	if path := pathBelow(cmd); path != "" {
		return strings.ReplaceAll(path, " ", "-") + ".md"
	}
	return cmd.Name() + ".md"
}

// page is the reference of one command in Markdown.
func page(cmd *cobra.Command) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n```\n%s\n```\n", cmd.CommandPath(), cmd.Short, cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlias: `%s`\n", strings.Join(cmd.Aliases, "`, `"))
	}
	if cmd.Long != "" {
		fmt.Fprintf(&b, "\n## Description\n\n```text\n%s\n```\n", cmd.Long)
	}
	fmt.Fprintf(&b, "\n## Examples\n\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n## Commands\n\n| Command | Does |\n|---|---|\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "| [%s](%s) | %s |\n", sub.Name(), pageName(sub), sub.Short)
			}
		}
	}
	options(&b, cmd.LocalNonPersistentFlags())
	return b.String()
}

func options(b *bytes.Buffer, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString("\n## Options\n\n| Option | Type | Default | Does |\n|---|---|---|---|\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name = "`-" + flag.Shorthand + "`, " + name
		}
		fallback := flag.DefValue
		if fallback == "false" || fallback == "0" {
			fallback = ""
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, flag.Value.Type(), fallback, strings.ReplaceAll(flag.Usage, "|", `\|`))
	})
}
