package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/docker/cli/cli"
)

// The exit statuses of a command that cannot be started, as shells have them.
const (
	statusNotExecutable = 126
	statusNoCommand     = 127
)

// ctrlCGrace is how long after the command's end a Ctrl-C may still be the one that ended it: a terminal sends it to the command
// and to us at once, and on a busy machine the command may have ended before we handle ours.
const ctrlCGrace = time.Second

// PassedStatus ends this program with the exit status of the command that it ran, and without a word.
type PassedStatus struct{ Status int }

func (e *PassedStatus) Error() string {
	return fmt.Sprintf("the command ended with status %d", e.Status)
}

// child runs one command on the client, whose standard streams are this program's.
type child struct {
	// isTerminal says that Ctrl-C reaches the command without our help.
	isTerminal bool
	now        func() time.Time

	mu      sync.Mutex
	process *os.Process // nil: it does not run
	ended   time.Time   // zero: it has not
	cancel  context.CancelFunc
	first   syscall.Signal // that came when it did not run
}

// watch hands signals on to the command while it runs. Before and after that, the first one ends the
// context that watch returns. parent ends if the CLI was sent a signal and could not pass it on.
func (c *child) watch(parent context.Context) (ctx context.Context, stop func()) {
	ctx, c.cancel = context.WithCancel(context.WithoutCancel(parent))
	received, over := make(chan os.Signal, 16), make(chan struct{})
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) { // by nohup(1), or a script that runs us in the background
			signal.Notify(received, sig)
		}
	}
	go func() {
		lost := parent.Done()
		for {
			select {
			case sig := <-received:
				lost = nil // it is about the same signal
				c.pass(sig)
			case <-lost:
				lost = nil
				select {
				case sig := <-received:
					c.pass(sig)
				case <-time.After(cliGrace):
					c.pass(syscall.SIGTERM)
				case <-over:
				}
			case <-over:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		close(over)
		c.cancel()
	}
}

// pass hands a signal to the command, which has a terminal's already. If it does not run, the signal ends what goes on before
// or after it, unless it is the terminal's that the command has just ended by.
func (c *child) pass(sig os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fromTerminal := c.isTerminal && (sig == os.Interrupt || sig == syscall.SIGQUIT)
	switch {
	case fromTerminal && !c.ended.IsZero() && c.now().Sub(c.ended) < ctrlCGrace:
	case c.process == nil:
		if number, ok := sig.(syscall.Signal); ok && c.first == 0 {
			c.first = number
		}
		c.cancel()
	case !fromTerminal:
		_ = c.process.Signal(sig) // it may have ended this moment
	}
}

// interrupted returns the exit status that the signal asks for which came before the command ran.
func (c *child) interrupted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == 0 {
		return statusSignal + int(syscall.SIGTERM)
	}
	return statusSignal + int(c.first)
}

// run runs the command, and returns its exit status: 128 and the signal's number if a signal ended it.
// It waits for the command whatever happens. An error means that the command could not be started.
func (c *child) run(words, variables []string) (int, error) {
	cmd := exec.Command(words[0], words[1:]...) //nolint:noctx // only its own end ends it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, socketVariable+"=") }), variables...)
	c.mu.Lock()
	err := cmd.Start()
	if err == nil {
		c.process = cmd.Process
	}
	c.mu.Unlock()
	if err != nil {
		return 0, startError(err)
	}
	err = cmd.Wait()
	c.mu.Lock()
	c.process, c.ended = nil, c.now()
	c.mu.Unlock()
	ended, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, nil
	case !ok:
		return 0, fmt.Errorf("wait for %s: %w", words[0], err)
	}
	if number := signalOf(ended.ProcessState); number != 0 {
		return statusSignal + number, nil
	}
	return ended.ExitCode(), nil
}

// startError gives the error of a command that could not be started the exit status that shells give it.
func startError(err error) error {
	status := statusNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		status = statusNoCommand
	}
	return cli.StatusError{Cause: err, Status: safeText(err.Error()), StatusCode: status}
}
