package commands

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/cli/cli"
	"github.com/docker/cli/opts"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

type mcpOptions struct {
	containers []string // empty: all
	readOnly   bool
	volumes    volumeOptions
}

func newMCPCommand(d deps) *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use:   "mcp [OPTIONS]",
		Short: "Serve agents over the Model Context Protocol",
		Long: `Serve agents over the Model Context Protocol, on stdin and stdout, until stdin ends.

The tools are create_snapshot, list_snapshots, inspect_snapshot, preview_restore,
restore_copy, fork_snapshot, restore_in_place, undo_restore, remove_snapshot,
diff_snapshot and read_file. They answer with a sentence and a small object. Lists have
at most 20 entries. A call that the client cancels is rolled back.

Snapshots that an agent takes have the trigger agent, and a limit of their own: the last
20 of each container stay.

With --container the tools see only snapshots of that container, and take snapshots of
no other. With --read-only there are only the tools that change nothing.`,
		Example: `  docker snapshot mcp
  docker snapshot mcp --container web --container db
  docker snapshot mcp --read-only`,
		Args:                  cli.NoArgs,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: adapt(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return runMCP(ctx, d, o)
		}),
	}
	cmd.Flags().Var(opts.NewListOptsRef(&o.containers, func(name string) (string, error) { return name, checkContainer(name) }), "container", "Serve only this container and its snapshots")
	cmd.Flags().BoolVar(&o.readOnly, "read-only", false, "Offer only the tools that change nothing")
	o.volumes.addFindingFlags(cmd.Flags())
	return cmd
}

// mcpServer answers the calls of one client.
type mcpServer struct {
	deps
	mcpOptions
	ending context.Context // ends with the server, and the calls with it
	calls  sync.WaitGroup
}

// runMCP serves until stdin has ended and each call is answered. A signal, or a client that has closed stdout, ends the calls, and
// runMCP returns once they are rolled back.
func runMCP(ctx context.Context, d deps, o mcpOptions) error {
	ending, end := context.WithCancel(ctx)
	s := &mcpServer{deps: d, mcpOptions: o, ending: ending}
	server := mcp.NewServer(&mcp.Implementation{Name: "docker-snapshot", Title: "Snapshots of Docker containers", Version: d.version}, nil)
	s.addTools(server)
	err := server.Run(ctx, lineTransport{d.in, d.out})
	end()
	s.calls.Wait()
	for _, gone := range []error{io.EOF, io.ErrClosedPipe, ErrOutputGone} { // it may go while it is answered
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

// mcpTool is a tool: its purpose, and the function that answers a call.
type mcpTool[In any] struct {
	name, description string
	hints             mcp.ToolAnnotations
	run               func(ctx context.Context, c *mcpCall, in In) (mcpAnswer, error)
}

// addTool offers a tool, unless it changes something and the server is read-only.
func addTool[In any](s *mcpServer, server *mcp.Server, t mcpTool[In]) {
	if s.readOnly && !t.hints.ReadOnlyHint {
		return
	}
	closed := false // nothing beyond this engine is touched
	t.hints.OpenWorldHint = &closed
	handle := func(ctx context.Context, request *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		s.calls.Add(1)
		defer s.calls.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)() //nolint:contextcheck // two contexts end a call
		answer, err := s.call(ctx, request, func(c *mcpCall) (mcpAnswer, error) { return t.run(ctx, c, in) })
		if err != nil {
			text := describe(err)
			answer = mcpAnswer{text, newFailure(err, text)}
		}
		result, err := answer.result(err != nil)
		return result, nil, err
	}
	mcp.AddTool(server, &mcp.Tool{Name: t.name, Description: t.description, Annotations: &t.hints}, handle)
}

// mcpCall is one call of a tool.
type mcpCall struct {
	*mcpServer
	eng      engine
	warned   warningList
	progress plan.Progress
}

func (s *mcpServer) call(ctx context.Context, request *mcp.CallToolRequest, run func(*mcpCall) (mcpAnswer, error)) (mcpAnswer, error) {
	eng, err := s.engine(s.volumes)
	if err != nil {
		return mcpAnswer{}, err
	}
	c := &mcpCall{mcpServer: s, eng: eng}
	c.progress = s.advised(c.warned.from(s.notify(ctx, request)))
	return run(c)
}

// mcpPace is how often a client is told about progress at most.
const mcpPace = 200 * time.Millisecond

// notify tells the client about progress, if it has asked for that.
func (s *mcpServer) notify(ctx context.Context, request *mcp.CallToolRequest) plan.Progress {
	token := request.Params.GetProgressToken()
	if token == nil {
		return func(plan.Event) {}
	}
	var mu sync.Mutex
	var told float64
	var last time.Time
	var phase string
	return func(e plan.Event) {
		mu.Lock()
		defer mu.Unlock()
		now := s.clock.now()
		if e.Level == plan.LevelStatus && e.Phase == phase && now.Sub(last) < mcpPace {
			return
		}
		told, last, phase = told+1, now, e.Phase
		text := e.Text
		if text == "" {
			text = e.Phase
		}
		// A client that does not listen finds out by the result.
		_ = request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: told, Message: oneLine(text)})
	}
}

// allow refuses a container that is not the client's business.
func (s *mcpServer) allow(container string) error {
	if err := checkContainer(container); err != nil {
		return err
	}
	if len(s.containers) == 0 || slices.Contains(s.containers, container) {
		return nil
	}
	return wrongArgument{errors.New("this server is only for " + strings.Join(s.containers, ", ") + ": use one of these")}
}

// resolve finds the snapshot that a word means, if its container is the client's business.
func (c *mcpCall) resolve(ctx context.Context, word string) (catalog.Snapshot, error) {
	if err := checkSnapshot(word); err != nil {
		return catalog.Snapshot{}, err
	}
	found, err := c.eng.Resolve(ctx, word)
	if err != nil {
		return catalog.Snapshot{}, err
	}
	return found, c.allow(found.Container.Name)
}
