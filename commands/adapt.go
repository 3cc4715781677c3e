package commands

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/docker/cli/cli"
	"github.com/spf13/cobra"
)

// The exit statuses that a command can end with besides 0 and those of signals: 128
// and the signal's number. Docker's own [cli.FlagErrorFunc] has 125, too. The root
// command's help lists them.
const (
	statusError      = 1
	statusUsage      = 125
	statusIncomplete = 3
	statusSignal     = 128
)

// errIncomplete is wrapped by the errors of commands that made what was asked
// for, but not all of it.
var errIncomplete = errors.New("incomplete")

// ErrOutputGone ends a command whose output nobody reads any more, as in
// docker snapshot inspect --files db | head. It is not worth a message.
var ErrOutputGone = errors.New("nobody reads the output")

// StatusOutputGone is the exit status of such a command. It is the same as if SIGPIPE had
// ended the program, which is how docker's own commands end.
const StatusOutputGone = statusSignal + 13

// onlyOutputGone tells whether a command failed for no other reason than that nobody reads
// its output. What was cancelled because of that is no other reason.
func onlyOutputGone(err error) bool {
	if !errors.Is(err, ErrOutputGone) {
		return false
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(one error) bool {
			return !onlyOutputGone(one) && !errors.Is(one, context.Canceled) && !errors.Is(one, syscall.EPIPE)
		})
	}
	return errors.Unwrap(err) == nil || onlyOutputGone(errors.Unwrap(err))
}

// adapt makes a cobra RunE of run: with a context that a signal ends, and with
// an error that carries the exit status and says what to do next.
func adapt(run func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, signals := watchSignals(cmd.Context())
		defer signals.stop()
		err := run(ctx, cmd, args)
		switch {
		case err == nil: // also if a signal came too late to change anything
			return nil
		case onlyOutputGone(err):
			return ErrOutputGone
		case ctx.Err() != nil:
			return cli.StatusError{Cause: err, Status: safeText(interruption(err)), StatusCode: statusSignal + signals.number()}
		}
		return withStatus(err)
	}
}

// withStatus gives an error its exit status, unless it has one.
func withStatus(err error) error {
	if _, has := errors.AsType[cli.StatusError](err); has {
		return err
	}
	code := statusError
	if errors.Is(err, errIncomplete) {
		code = statusIncomplete
	}
	return cli.StatusError{Cause: err, Status: safeText(explain(err)), StatusCode: code}
}

// usageError reports wrong options as docker does: with the usage, and 125.
func usageError(cmd *cobra.Command, err error) error {
	return flagError(cmd, err)
}

// repeatGrace is how long after the first signal further ones are taken for the
// same. timeout(1) sends each twice, to the process and to its group; if the
// second one killed us, a paused container would stay paused.
const repeatGrace = time.Second

// cliGrace is how long to wait for a signal of our own after the CLI has closed
// its socket: Ctrl-C reaches both processes, on a busy machine one after the other, and
// the exit status has to say that it was Ctrl-C.
const cliGrace = 250 * time.Millisecond

// signals is what the process was sent while a command ran.
//
// On a terminal the CLI leaves it to the plugin to handle signals. Without one,
// the CLI that gets a signal closes the plugin's socket instead of passing it
// on, which ends cmd.Context(). Then nobody knows which signal it was; most
// likely SIGTERM, for Ctrl-C goes to all processes in the foreground.
type signals struct {
	received chan os.Signal
	first    chan syscall.Signal
	stop     func()
}

// watchSignals returns a context that the first signal ends. A second later the
// signals have their usual effect again, so another one kills. SIGPIPE is one of
// them, because whoever reads our output may go away at any time.
func watchSignals(parent context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancel(parent)
	s := &signals{received: make(chan os.Signal, 1), first: make(chan syscall.Signal, 1)}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE} {
		if !signal.Ignored(sig) { // by nohup(1), or a script that runs us in the background
			signal.Notify(s.received, sig)
		}
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		if !s.await(over) {
			return
		}
		cancel()
		select {
		case <-time.After(repeatGrace):
			signal.Stop(s.received)
		case <-over:
		}
	}()
	s.stop = func() {
		close(over)
		<-watched
		signal.Stop(s.received)
		cancel()
	}
	return ctx, s
}

// await waits for a signal, until over is closed. It ignores a SIGPIPE that is not about
// our own output: a broken connection causes that, and whoever writes to the connection
// gets the error.
func (s *signals) await(over <-chan struct{}) bool {
	for {
		select {
		case sig := <-s.received:
			number, _ := sig.(syscall.Signal)
			if number == syscall.SIGPIPE && !outputGone() {
				continue
			}
			s.first <- number
			return true
		case <-over:
			return false
		}
	}
}

// number is the signal that ended the context.
func (s *signals) number() int {
	select {
	case first := <-s.first:
		return int(first)
	case <-time.After(cliGrace):
		return int(syscall.SIGTERM)
	}
}
