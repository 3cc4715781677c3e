package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// guardName is the hidden command that puts right what a killed client leaves.
const guardName = "guard"

// allDone is what a guard is told when there is nothing left to guard.
const allDone = "done"

// socketVariable names the socket over which the CLI tells a plugin to end. The guard
// does not get it, because it has to outlive both.
const socketVariable = "DOCKER_CLI_PLUGIN_SOCKET"

// newGuard returns a function that starts a guard: another process of this program, in a
// session of its own. The guard puts everything right if its input ends before this
// process has told it that all is done. So it covers what this process cannot: being
// killed. global are docker's own options, with which the guard reaches the same engine.
func newGuard(global []string) dockerop.Guard {
	return func(ctx context.Context, w dockerop.Watched) (release func(), err error) {
		guard, err := detached(ctx, slices.Concat(global, []string{Name, guardName}, guardArgs(w)))
		if err != nil {
			return nil, err
		}
		input, err := guard.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("open its input: %w", err)
		}
		if err := guard.Start(); err != nil {
			return nil, fmt.Errorf("start it: %w", err)
		}
		if w.Hook != nil { // not as an argument: everybody on this host can read those
			if err := json.NewEncoder(input).Encode(w.Hook); err != nil {
				return nil, fmt.Errorf("tell it what to do: %w", err)
			}
		}
		return func() {
			_, _ = io.WriteString(input, allDone+"\n") // one that has died guards nothing
			_ = input.Close()
			go func() { _ = guard.Wait() }() // not worth waiting for
		}, nil
	}
}

// detached is another process of this program, in a session of its own, so that it survives this one.
func detached(ctx context.Context, args []string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	other := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	other.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, socketVariable+"=") })
	other.SysProcAttr = ownSession()
	return other, nil
}

func guardArgs(w dockerop.Watched) []string {
	switch {
	case w.Hook != nil:
		return []string{"--hook"}
	case w.Replaced != "":
		// The user's --lock-timeout is not for the guard: it has to outlast the orphaned worker.
		return []string{"--replaced", w.Replaced}
	}
	return w.Frozen
}

type guardOptions struct {
	volumes  volumeOptions
	replaced string
	hook     bool
}

func newGuardCommand(d deps) *cobra.Command {
	var o guardOptions
	cmd := &cobra.Command{
		Use:                   guardName + " [OPTIONS] [CONTAINER…]",
		Short:                 "Put right what a killed client leaves, when the standard input ends",
		Long:                  "Put right what a killed client leaves, when the standard input ends: thaw containers, roll a restore back, or run a post hook. For the plugin's own use.",
		Example:               "  docker snapshot guard web < pipe",
		Hidden:                true,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runGuard(context.WithoutCancel(cmd.Context()), d, cmd.InOrStdin(), o, args)
		},
	}
	cmd.Flags().StringVar(&o.replaced, "replaced", "", "Roll a restore in place of this container back")
	cmd.Flags().BoolVar(&o.hook, "hook", false, "Run the post hook that the first line of the input describes")
	o.volumes.addLockFlag(cmd.Flags())
	return cmd
}

func runGuard(ctx context.Context, d deps, input io.Reader, o guardOptions, containers []string) error {
	lines := bufio.NewReader(input)
	var hook dockerop.Exec
	if o.hook {
		line, err := lines.ReadBytes('\n')
		if err := errors.Join(err, json.Unmarshal(line, &hook)); err != nil {
			return fmt.Errorf("read the hook: %w", err) // the client died before any hook ran
		}
	}
	told, err := lines.ReadString('\n')
	if err == nil && strings.TrimSpace(told) == allDone {
		return nil
	}
	return d.untilDone(func() error {
		eng, err := d.engine(o.volumes)
		if err != nil {
			return err
		}
		switch {
		case o.hook:
			return eng.EndHook(ctx, hook)
		case o.replaced != "":
			return eng.Settle(ctx, o.replaced, nil)
		}
		return eng.Thaw(ctx, containers)
	})
}

// How long a guard goes on trying, and how long it pauses in between. The pauses grow. The
// engine may be out of reach, as it was for the client, or something is in the way.
const (
	guardPatience   = 15 * time.Minute
	guardFirstPause = time.Second
	guardMostPause  = 30 * time.Second
)

// untilDone tries until there is no error any more, or guardPatience is over. It returns
// the last error.
func (d deps) untilDone(try func() error) error {
	deadline := d.clock.now().Add(guardPatience)
	for pause := guardFirstPause; ; pause = min(2*pause, guardMostPause) {
		err := try()
		if err == nil || d.clock.now().Add(pause).After(deadline) {
			return err
		}
		d.wait(pause)
	}
}
