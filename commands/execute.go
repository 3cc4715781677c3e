package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/docker/cli/cli/command"
	"github.com/docker/cli/cli/streams"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// execution is a command that is executed in a container, as docker exec does.
type execution struct {
	interactive, tty bool
	user, directory  string
	env, command     []string
}

// executor executes commands on the engine that the CLI's context leads to. Their streams are the CLI's.
type executor struct{ cli command.Cli }

// execute executes a command in a container, and returns its exit status.
func (x executor) execute(ctx context.Context, id string, e execution) (status int, err error) {
	docker := x.cli.Client()
	if err := x.cli.In().CheckTty(e.interactive, e.tty); err != nil {
		return 0, err
	}
	size := x.size(e)
	created, err := docker.ContainerExecCreate(ctx, id, container.ExecOptions{
		User: e.user, Tty: e.tty, WorkingDir: e.directory, Env: e.env, Cmd: e.command, ConsoleSize: size,
		AttachStdin: e.interactive, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return 0, err // the engine's own words
	}
	attached, err := docker.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{Tty: e.tty, ConsoleSize: size})
	if err != nil {
		return 0, err
	}
	defer attached.Close()
	if e.tty {
		stop := x.followSize(ctx, created.ID)
		defer stop()
	}
	if err := x.stream(ctx, attached, e); err != nil {
		return 0, err
	}
	ended, err := docker.ContainerExecInspect(ctx, created.ID)
	if err != nil {
		return 0, fmt.Errorf("ask for the exit status of the command: %w", err)
	}
	return ended.ExitCode, nil
}

// size is how large the terminal is: rows and columns. It is nil if there is none.
func (x executor) size(e execution) *[2]uint {
	rows, columns := x.cli.Out().GetTtySize()
	if !e.tty || rows == 0 && columns == 0 {
		return nil
	}
	return &[2]uint{rows, columns}
}

// followSize tells the engine how large the terminal is, now and whenever that changes.
func (x executor) followSize(ctx context.Context, exec string) (stop func()) {
	changed, over := make(chan os.Signal, 1), make(chan struct{})
	notifyResize(changed)
	resize := func() {
		if rows, columns := x.cli.Out().GetTtySize(); rows > 0 || columns > 0 {
			_ = x.cli.Client().ContainerExecResize(ctx, exec, container.ResizeOptions{Height: rows, Width: columns}) // it may have ended
		}
	}
	go func() {
		resize()
		for {
			select {
			case <-changed:
				resize()
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(over)
	}
}

// stream passes input and output on until the output ends.
func (x executor) stream(ctx context.Context, attached types.HijackedResponse, e execution) error {
	if e.tty {
		restore, err := rawTerminal(x.cli.In(), x.cli.Out())
		if err != nil {
			return err
		}
		defer restore()
	}
	if e.interactive {
		go func() {
			_, _ = io.Copy(attached.Conn, x.cli.In()) // the command may have ended
			_ = attached.CloseWrite()
		}()
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		if e.tty {
			_, err = io.Copy(x.cli.Out(), attached.Reader)
		} else {
			_, err = stdcopy.StdCopy(x.cli.Out(), x.cli.Err(), attached.Reader)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("read the output of the command: %w", err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rawTerminal passes every key on, also Ctrl-C.
func rawTerminal(in *streams.In, out *streams.Out) (restore func(), err error) {
	err = errors.Join(in.SetRawTerminal(), out.SetRawTerminal())
	restore = func() {
		in.RestoreTerminal()
		out.RestoreTerminal()
	}
	if err != nil {
		restore()
		return nil, fmt.Errorf("set up the terminal: %w", err)
	}
	return restore, nil
}
