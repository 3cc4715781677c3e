package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/cli/streams"
	"github.com/spf13/cobra"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// exitStatus is what the CLI's plugin package would exit with.
func exitStatus(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	status, ok := errors.AsType[cli.StatusError](err)
	assert.Assert(t, ok, "%v", err)
	assert.Assert(t, status.Error() != "", "the CLI would print an empty line")
	return status.StatusCode
}

// runAdapted runs f as the command's RunE.
func runAdapted(ctx context.Context, f func(context.Context) error) error {
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	run := adapt(func(ctx context.Context, _ *cobra.Command, _ []string) error { return f(ctx) }) //nolint:contextcheck // cobra carries it
	return run(cmd, nil)
}

func TestExitStatusOfErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"success", nil, 0},
		{"error", errors.New("it broke"), 1},
		{"incomplete", fmt.Errorf("snapshot is %w", errIncomplete), 3},
		{"several, one incomplete", errors.Join(errors.New("it broke"), errIncomplete), 3},
		{"has one", cli.StatusError{StatusCode: 125, Status: "wrong options"}, 125},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := runAdapted(t.Context(), func(context.Context) error { return tc.err })
			assert.Equal(t, exitStatus(t, err), tc.want)
			assert.Assert(t, errors.Is(err, tc.err) || tc.err == nil)
		})
	}
}

// Without a terminal the CLI ends the plugin's context instead of passing its signal on.
func TestTheCLIEndsTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := runAdapted(ctx, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return fmt.Errorf("commit container web: %w", ctx.Err())
	})
	assert.Equal(t, exitStatus(t, err), 143)
	assert.Equal(t, err.Error(), "interrupted: nothing was changed")
}

func TestTheCLIComesTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NilError(t, runAdapted(ctx, func(context.Context) error { return nil }))
}

// closedPipe is what is left of a pipe that nobody reads.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
}

// docker snapshot … | head is no failure.
func TestWhenNobodyReadsTheOutput(t *testing.T) {
	for _, args := range []string{"ls", "inspect before", "inspect --files before", "inspect --files --format json before", "create web", "rm --force before"} {
		t.Run(args, func(t *testing.T) {
			f := newFixture()
			eng := &printingEngine{}
			eng.list = []catalog.Snapshot{firstSnapshot()}
			eng.created = capture.Created{Snapshot: firstSnapshot()}
			d := f.deps()
			d.out = terminal{streams.NewOut(closedPipe{})}
			d.engine = func(volumeOptions) (engine, error) { return eng, nil }
			root := newRoot(d)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(strings.Fields(args))
			assert.Equal(t, root.ExecuteContext(t.Context()), ErrOutputGone)
		})
	}
}

func TestOtherFailuresAreNotHiddenByTheOutput(t *testing.T) {
	gone := fmt.Errorf("write result: %w", fmt.Errorf("%w: %w", ErrOutputGone, syscall.EPIPE))
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{gone, true},
		{errors.Join(context.Canceled, gone), true},
		{fmt.Errorf("list files: %w", errors.Join(gone, fmt.Errorf("volume data: %w", context.Canceled))), true},
		{errors.Join(gone, errors.New("container web could not be put back")), false},
		{fmt.Errorf("start worker: %w", syscall.EPIPE), false}, // the engine's connection
		{context.Canceled, false},
		{nil, false},
	} {
		assert.Equal(t, onlyOutputGone(tc.err), tc.want, "%v", tc.err)
	}
}
