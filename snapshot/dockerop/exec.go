package dockerop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

// Exec is a command that runs in a container, and can be ended. The engine itself has no call that
// ends one, so each process gets a mark in its environment, by which another command finds it.
type Exec struct {
	Container string
	Command   []string
	Timeout   time.Duration
	Mark      string // no other process has it
}

// MarkVariable is the environment variable that holds an [Exec]'s mark.
const MarkVariable = "CUA_SNAPSHOT_HOOK"

// maxExecOutput bounds what is kept of a command's output.
const maxExecOutput = 4096

// How long to wait for a command to be ended, and for the engine to notice that one has ended.
const (
	endTimeout    = 10 * time.Second
	noticeTimeout = 5 * time.Second
)

// ExecError says that a command in a container did not do its work.
type ExecError struct {
	Status   int           // that it ended with; 0: see the others
	TimedOut time.Duration // it took longer than this
	Left     error         // it could not be ended, and may still run
}

func (e *ExecError) Error() string {
	text := fmt.Sprintf("exit status %d", e.Status)
	if e.TimedOut > 0 {
		text = fmt.Sprintf("it took longer than %s, and was ended", e.TimedOut)
	}
	if e.Left != nil {
		text = fmt.Sprintf("it took longer than %s, and may still be running: %v", e.TimedOut, e.Left)
	}
	return text
}

// RunExec runs a command in a running container and returns the first part of its output. If it takes
// longer than its timeout, or ctx ends, RunExec ends the command and all that it started.
func (e *Engine) RunExec(ctx context.Context, x Exec) (output string, err error) {
	limited, stop := context.WithTimeout(ctx, x.Timeout)
	defer stop()
	output, status, err := e.attachExec(limited, x.Container, container.ExecOptions{
		AttachStdout: true, AttachStderr: true, Cmd: x.Command, Env: []string{MarkVariable + "=" + x.Mark},
	})
	switch {
	case limited.Err() != nil:
		left := e.EndExec(ctx, x)
		if ctx.Err() != nil {
			return output, errors.Join(context.Cause(ctx), left)
		}
		return output, &ExecError{TimedOut: x.Timeout, Left: left}
	case err == nil && status != 0:
		err = &ExecError{Status: status}
	}
	return output, err
}

// endScript kills every process with the mark in $0, and all that they started: a process that has
// changed its user hides its environment. It looks again until there is
// none: one may have started others meanwhile, or take a moment to end. It needs nothing but a shell, whose read drops the NULs between variables.
const endScript = `exec 2>/dev/null
is_marked() {
	while read -r text || [ -n "$text" ]; do
		case "$text" in *"$0"*) return 0 ;; esac
	done <"$1/environ"
	return 1
}
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	found=" "
	for round in 1 2 3; do
		for p in /proc/[0-9]*; do
			read -r line <"$p/stat" || continue
			set -- ${line##*) }
			[ "$1" != Z ] || continue
			pid=${p#/proc/}
			case "$found" in
			*" $pid "*) ;;
			*" $2 "*) found="$found$pid " ;;
			*) if is_marked "$p"; then found="$found$pid "; fi ;;
			esac
		done
	done
	[ "$found" != " " ] || exit 0
	kill -9 $found
	sleep 0.05
done
exit 1
`

// EndsExec tells whether a command, as the engine's events have it, is that of [Engine.EndExec].
func EndsExec(command string) bool {
	return strings.Contains(command, MarkVariable+"=") && strings.Contains(command, strings.TrimSpace(endScript))
}

// EndExec ends what [Engine.RunExec] has started, also for a client that is dead. It works after
// Ctrl-C, and needs sh in the container.
func (e *Engine) EndExec(ctx context.Context, x Exec) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer stop()
	_, status, err := e.attachExec(ctx, x.Container, container.ExecOptions{
		AttachStdout: true, AttachStderr: true, Cmd: []string{"sh", "-c", endScript, MarkVariable + "=" + x.Mark},
	})
	if err == nil && status != 0 {
		err = fmt.Errorf("ending it failed with exit status %d", status)
	}
	return err
}

// attachExec runs a command to its end. When ctx ends, it leaves the command alone and returns.
func (e *Engine) attachExec(ctx context.Context, id string, o container.ExecOptions) (output string, status int, err error) {
	created, err := e.ContainerExecCreate(ctx, id, o)
	if err != nil {
		return "", 0, err
	}
	attached, err := e.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{})
	if err != nil {
		return "", 0, err
	}
	said := &firstBytes{most: maxExecOutput}
	unwatch := context.AfterFunc(ctx, func() { closeConn(attached.Conn) })
	_, err = stdcopy.StdCopy(said, said, attached.Reader)
	unwatch()
	closeConn(attached.Conn)
	if ctx.Err() != nil {
		return said.String(), 0, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return said.String(), 0, fmt.Errorf("read its output: %w", err)
	}
	status, err = e.execStatus(ctx, created.ID)
	return said.String(), status, err
}

// IsExecRetriable tells whether a command did not run for a reason that may pass: the engine was out
// of reach, or the container paused.
func IsExecRetriable(err error) bool {
	return err != nil && (client.IsErrConnectionFailed(err) || strings.Contains(err.Error(), "is paused"))
}

func closeConn(c net.Conn) {
	if c != nil {
		_ = c.Close()
	}
}

// execStatus returns the exit status of a command whose output has ended.
func (e *Engine) execStatus(ctx context.Context, exec string) (status int, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, noticeTimeout, errors.New("it closed its output and goes on"))
	defer stop()
	err = Poll(ctx, func() (bool, error) {
		now, err := e.ContainerExecInspect(ctx, exec)
		status = now.ExitCode
		return !now.Running, err
	})
	return status, err
}

// firstBytes keeps the first bytes that are written to it. Several goroutines may use it.
type firstBytes struct {
	mu   sync.Mutex
	kept []byte
	most int
	cut  bool
}

func (b *firstBytes) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := min(b.most-len(b.kept), len(p))
	b.kept = append(b.kept, p[:room]...)
	b.cut = b.cut || room < len(p)
	return len(p), nil
}

func (b *firstBytes) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut {
		return string(b.kept) + " …"
	}
	return string(b.kept)
}
