//go:build unix

package commands

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gotest.tools/v3/assert"
)

// send sends the test itself signals.
func send(t *testing.T, numbers ...syscall.Signal) {
	t.Helper()
	for _, number := range numbers {
		assert.NilError(t, syscall.Kill(os.Getpid(), number))
	}
}

// heed makes those signals count that whoever runs the tests ignores, as nohup(1) does: children inherit that.
func heed(t *testing.T) {
	t.Helper()
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	t.Cleanup(func() { signal.Stop(received) })
}

func TestSignalsEndTheContext(t *testing.T) {
	for _, tc := range []struct {
		name string
		sent []syscall.Signal
		want int
	}{
		{"Ctrl-C", []syscall.Signal{syscall.SIGINT}, 130},
		{"kill", []syscall.Signal{syscall.SIGTERM}, 143},
		{"the terminal is gone", []syscall.Signal{syscall.SIGHUP}, 129},
		{"timeout sends each twice", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM}, 143},
	} {
		t.Run(tc.name, func(t *testing.T) {
			heed(t)
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			err := runAdapted(t.Context(), func(ctx context.Context) error {
				send(t, tc.sent[0])
				<-ctx.Done()
				send(t, tc.sent[1:]...)
				return errors.New("took everything back")
			})
			assert.Equal(t, exitStatus(t, err), tc.want)
			assert.Equal(t, err.Error(), "interrupted: took everything back")
		})
	}
}

// nobodyReads, in the environment, makes the test program below a command whose output
// nobody reads.
const nobodyReads = "DOCKER_SNAPSHOT_TEST_NOBODY_READS"

func TestACommandEndsWhenNobodyReadsItsOutput(t *testing.T) {
	if os.Getenv(nobodyReads) != "" {
		err := runAdapted(t.Context(), func(ctx context.Context) error {
			for ctx.Err() == nil {
				_, _ = os.Stdout.WriteString("line\n")
			}
			return errors.New("rolled everything back")
		})
		os.Exit(exitStatus(t, err)) //nolint:forbidigo // the parent looks at the status
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), nobodyReads+"=1")
	out, err := cmd.StdoutPipe()
	assert.NilError(t, err)
	assert.NilError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	assert.NilError(t, err)
	assert.NilError(t, out.Close())
	died, ok := errors.AsType[*exec.ExitError](cmd.Wait())
	assert.Assert(t, ok)
	assert.Equal(t, died.ExitCode(), 141)
}

// The kernel sends SIGPIPE for a broken connection, too. That is an error like any other.
func TestABrokenConnectionIsNoInterruption(t *testing.T) {
	heed(t)
	err := runAdapted(t.Context(), func(ctx context.Context) error {
		ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		assert.NilError(t, err)
		assert.NilError(t, syscall.Close(ends[1]))
		file := os.NewFile(uintptr(ends[0]), "connection")
		defer file.Close()
		_, writeErr := file.WriteString("request")
		assert.Assert(t, errors.Is(writeErr, syscall.EPIPE), "%v", writeErr)
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // the signal has had its time
		}
		return writeErr
	})
	assert.Equal(t, exitStatus(t, err), 1)
	assert.ErrorContains(t, err, "broken pipe")
}

func TestASignalThatComesTooLateChangesNothing(t *testing.T) {
	heed(t)
	err := runAdapted(t.Context(), func(ctx context.Context) error {
		send(t, syscall.SIGINT)
		<-ctx.Done()
		return nil
	})
	assert.NilError(t, err)
}

// On Ctrl-C the CLI may end the context before our own signal is here; the
// status is that of the signal all the same.
func TestCtrlCThatReachesTheCLIFirst(t *testing.T) {
	heed(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := runAdapted(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		send(t, syscall.SIGINT)
		return ctx.Err()
	})
	assert.Equal(t, exitStatus(t, err), 130)
}

// stubborn, in the environment, makes the test program below a command that
// does not end when it is told to.
const stubborn = "DOCKER_SNAPSHOT_TEST_STUBBORN"

func TestASignalAfterAWhileKills(t *testing.T) {
	if os.Getenv(stubborn) != "" {
		_ = runAdapted(t.Context(), func(context.Context) error {
			_, _ = os.Stdout.WriteString("ready\n")
			select {}
		})
	}
	heed(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), stubborn+"=1")
	out, err := cmd.StdoutPipe()
	assert.NilError(t, err)
	assert.NilError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1)) // now it waits for signals
	assert.NilError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	const interval = 50 * time.Millisecond
	again := time.NewTicker(interval)
	defer again.Stop()
	for range 2 { // as timeout(1) does
		assert.NilError(t, cmd.Process.Signal(syscall.SIGINT))
	}
	for sent := 2; ; {
		select {
		case err = <-ended:
			died, ok := errors.AsType[*exec.ExitError](err)
			assert.Assert(t, ok, "%v", err)
			assert.Equal(t, died.Sys().(syscall.WaitStatus).Signal(), syscall.SIGINT)
			assert.Assert(t, sent > 2, "the second one killed it")
			return
		case <-again.C:
			_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended meanwhile
			sent++
		}
	}
}
