package plugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/commands"
)

func TestStandaloneArgumentsBecomeThoseOfThePlugin(t *testing.T) {
	for _, tc := range []struct{ name, args, want string }{
		{"no arguments", "", "snapshot"},
		{"command", "create web", "snapshot create web"},
		{"command with options", "ls -q --format json", "snapshot ls -q --format json"},
		{"help option", "--help", "snapshot --help"},
		{"help command", "help create", "help snapshot create"},
		{"as the CLI calls it", "snapshot create web", "snapshot create web"},
		{"a container of that name", "create snapshot", "snapshot create snapshot"},
		{"global option", "--context far ls", "--context far snapshot ls"},
		{"global option with =", "--host=unix:///x ls", "--host=unix:///x snapshot ls"},
		{"short global option", "-H unix:///x snapshot ls", "-H unix:///x snapshot ls"},
		{"completion", "__complete create we", "__complete snapshot create we"},
		{"completion by the CLI", "__complete snapshot create we", "__complete snapshot create we"},
		{"unknown option", "--nonsense", "snapshot --nonsense"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := withCommand(strings.Fields(tc.args))
			assert.Equal(t, strings.Join(got, " "), tc.want)
		})
	}
}

func TestThereIsAlwaysAVersion(t *testing.T) {
	assert.Assert(t, Version() != "")
}

func TestCommandsEndQuietlyWhenNobodyReads(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status int
	}{
		"nobody reads": {commands.ErrOutputGone, commands.StatusOutputGone},
		"fails":        {errors.New("it broke"), 0},
		"is done":      {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := 0
			root := &cobra.Command{}
			root.AddCommand(&cobra.Command{Use: "ls", RunE: func(*cobra.Command, []string) error { return tc.err }})
			endQuietly(root, func(code int) { status = code })
			err := root.Commands()[0].RunE(nil, nil)
			assert.Equal(t, status, tc.status)
			assert.Assert(t, errors.Is(err, tc.err))
		})
	}
}
