package enginetest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// FakeExec is a command in a container. It ends at once, unless the test says otherwise.
type FakeExec struct {
	Container *FakeContainer
	Command   string // the words, with blanks between them
	Mark      string // its environment
	Output    string
	Status    int
	Hangs     bool // until another command kills what has this one's mark
	running   bool
	output    net.Conn
}

// ContainerExecCreate fails for a container that does not run, in the words of an engine.
func (f *Docker) ContainerExecCreate(ctx context.Context, id string, o container.ExecOptions) (created container.ExecCreateResponse, err error) {
	err = f.withContainer(ctx, "ContainerExecCreate", id, func(c *FakeContainer) error {
		switch c.State {
		case "paused":
			return fmt.Errorf("container %s is paused, unpause the container before exec: %w", id, cerrdefs.ErrConflict)
		case "running":
		default:
			return fmt.Errorf("container %s is not running: %w", id, cerrdefs.ErrConflict)
		}
		x := &FakeExec{Container: c, Command: strings.Join(o.Cmd, " "), Mark: strings.Join(o.Env, " ")}
		f.Execs = append(f.Execs, x)
		created.ID = fmt.Sprint("exec-", len(f.Execs))
		return nil
	})
	return created, err
}

// ContainerExecAttach runs the command. OnExec, if the test has set it, says how it ends.
func (f *Docker) ContainerExecAttach(ctx context.Context, id string, _ container.ExecAttachOptions) (attached types.HijackedResponse, err error) {
	err = f.do(ctx, "ContainerExecAttach "+id, func() error {
		x := f.findExec(id)
		if f.OnExec != nil {
			f.OnExec(x)
		}
		for _, other := range f.Execs {
			if other.Hangs && other.running && strings.HasSuffix(x.Command, " "+other.Mark) {
				other.running, other.Status = false, 137
				_ = other.output.Close()
			}
		}
		ours, theirs := net.Pipe()
		x.output, x.running = theirs, x.Hangs
		attached = types.HijackedResponse{Conn: ours, Reader: bufio.NewReader(ours)}
		output, hangs := x.Output, x.Hangs
		go func() {
			_, _ = stdcopy.NewStdWriter(theirs, stdcopy.Stdout).Write([]byte(output))
			if !hangs {
				_ = theirs.Close()
			}
		}()
		return nil
	})
	return attached, err
}

// ContainerExecInspect tells whether the command has ended, and how.
func (f *Docker) ContainerExecInspect(ctx context.Context, id string) (found container.ExecInspect, err error) {
	err = f.do(ctx, "ContainerExecInspect "+id, func() error {
		x := f.findExec(id)
		found = container.ExecInspect{ExecID: id, ContainerID: x.Container.ID, Running: x.running, ExitCode: x.Status}
		return nil
	})
	return found, err
}

func (f *Docker) findExec(id string) *FakeExec {
	at := slices.IndexFunc(f.Execs, func(x *FakeExec) bool { return id == fmt.Sprint("exec-", slices.Index(f.Execs, x)+1) })
	return f.Execs[at]
}
