package commands

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// guardedEngine records what a guard has it do.
type guardedEngine struct {
	engine
	thawed  []string
	settled string
}

func (e *guardedEngine) Thaw(_ context.Context, containers []string) error {
	e.thawed = containers
	return nil
}

func (e *guardedEngine) Settle(_ context.Context, container string, _ snapshot.Progress) error {
	e.settled = container
	return nil
}

func TestGuardActsUnlessItIsToldThatAllIsDone(t *testing.T) {
	for _, tc := range []struct {
		name, input, replaced string
		thawed                []string
		settled               string
	}{
		{"the client died", "", "", []string{"a", "b"}, ""},
		{"the client died while it told", "don", "", []string{"a", "b"}, ""},
		{"the client is done", allDone + "\n", "", nil, ""},
		{"the client died while it replaced", "", "web", nil, "web"},
		{"the client is done with replacing", allDone + "\n", "web", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eng := &guardedEngine{}
			d := deps{engine: func() (engine, error) { return eng, nil }}
			assert.NilError(t, runGuard(t.Context(), d, strings.NewReader(tc.input), guardOptions{replaced: tc.replaced}, []string{"a", "b"}))
			assert.DeepEqual(t, eng.thawed, tc.thawed)
			assert.Equal(t, eng.settled, tc.settled)
		})
	}
}

func TestGuardIsToldWhatToWatch(t *testing.T) {
	root := newRoot(newFixture().deps())
	for _, w := range []snapshot.Watched{{Frozen: []string{"a", "b"}}, {Replaced: "web"}} {
		args := guardArgs(w, volumebackup.Config{Store: "other", LockTimeout: time.Millisecond})
		cmd, rest, err := root.Find(append([]string{guardName}, args...))
		assert.NilError(t, err)
		assert.NilError(t, cmd.ParseFlags(rest))
		assert.DeepEqual(t, cmd.Flags().Args(), append([]string{}, w.Frozen...))
		assert.Equal(t, cmd.Flag("replaced").Value.String(), w.Replaced)
		assert.Equal(t, cmd.Flag("store").Changed, w.Replaced != "")
		assert.Equal(t, cmd.Flag("lock-timeout").Value.String(), time.Minute.String())
	}
}
