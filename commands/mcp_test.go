package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/docker/cli/cli/streams"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
)

// agent runs "docker snapshot mcp" with a client of the SDK on the other end of two pipes. ended is the command's error.
func (f *fixture) agent(t *testing.T, o *mcp.ClientOptions, args ...string) (session *mcp.ClientSession, ended chan error) {
	t.Helper()
	session, ended, _ = f.agentOverPipe(t, o, args...)
	return session, ended
}

// agentEnd has the ways to end a server.
type agentEnd struct {
	stdin     io.Closer // the client's end
	interrupt func()    // as a signal does
}

// agentOverPipe also returns the ways to end the server.
func (f *fixture) agentOverPipe(t *testing.T, o *mcp.ClientOptions, args ...string) (session *mcp.ClientSession, ended chan error, end agentEnd) {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	d := f.deps()
	d.in, d.out = streams.NewIn(serverIn), terminal{streams.NewOut(serverOut)}
	root := newRoot(d)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(append([]string{"mcp"}, args...))
	ended = make(chan error, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	go func() {
		ended <- root.ExecuteContext(ctx)
		_ = serverOut.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, nil)
	assert.NilError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session, ended, agentEnd{clientOut, interrupt}
}

// use calls a tool, and returns the object of its answer, which is also there as text, after the sentence.
func use(t *testing.T, session *mcp.ClientSession, tool string, args map[string]any) (result map[string]any, failed bool) {
	t.Helper()
	called, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	assert.NilError(t, err)
	raw, err := json.Marshal(called.StructuredContent)
	assert.NilError(t, err)
	assert.NilError(t, json.Unmarshal(raw, &result), "%s: %v", tool, called.Content)
	var text map[string]any
	assert.Assert(t, is.Len(called.Content, 2))
	assert.NilError(t, json.Unmarshal([]byte(called.Content[1].(*mcp.TextContent).Text), &text))
	assert.DeepEqual(t, text, result)
	return result, called.IsError
}

func (f *fixture) agentEngine() *printingEngine {
	eng := &printingEngine{replaced: somethingReplaced()}
	eng.list = []catalog.Snapshot{firstSnapshot(), secondSnapshot()}
	eng.created = capture.Created{Snapshot: firstSnapshot(), Frozen: 120 * time.Millisecond}
	eng.restored = restoredCopy()
	f.evil = eng
	return eng
}

func TestAgentsGetAnswers(t *testing.T) {
	for _, tc := range []struct {
		tool   string
		args   map[string]any
		key    string
		want   any
		failed bool
	}{
		{"create_snapshot", map[string]any{"container": "web", "name": "before", "tags": []string{"a"}}, "status", "created", false},
		{"create_snapshot", map[string]any{"container": "web"}, "id", string(firstID), false},
		{"create_snapshot", map[string]any{"container": ""}, "code", "usage", true},
		{"create_snapshot", map[string]any{"container": "web", "name": "no name"}, "code", "usage", true},
		{"inspect_snapshot", map[string]any{"snapshot": "before"}, "id", string(firstID), false},
		{"inspect_snapshot", map[string]any{"snapshot": "gone"}, "code", "not_found", true},
		{"preview_restore", map[string]any{"snapshot": "before"}, "status", "planned", false},
		{"preview_restore", map[string]any{"snapshot": "before", "in_place": true}, "status", "planned", false},
		{"restore_copy", map[string]any{"snapshot": "before", "name": "copy"}, "status", "restored", false},
		{"restore_in_place", map[string]any{"snapshot": "before"}, "safety", string(secondID), false},
		{"restore_in_place", map[string]any{"snapshot": "before", "only": []string{"data"}}, "safety", string(secondID), false},
		{"restore_in_place", map[string]any{"snapshot": "before", "only": []string{""}}, "code", "usage", true},
		{"fork_snapshot", map[string]any{"snapshot": "before", "count": 0}, "code", "usage", true},
		{"fork_snapshot", map[string]any{"snapshot": "gone", "count": 2}, "code", "not_found", true},
		{"diff_snapshot", map[string]any{"snapshot": "before"}, "more", 0.0, false},
		{"diff_snapshot", map[string]any{"snapshot": "before", "with": "gone"}, "code", "not_found", true},
		{"undo_restore", map[string]any{"container": "web"}, "code", "not_found", true},
		{"remove_snapshot", map[string]any{"snapshot": "before"}, "code", "pinned", true},
		{"remove_snapshot", map[string]any{"snapshot": string(secondID)}, "status", "removed", false},
		{"remove_snapshot", map[string]any{"snapshot": "gone"}, "status", "not_found", false},
	} {
		t.Run(tc.tool, func(t *testing.T) {
			f := newFixture()
			f.agentEngine()
			session, _ := f.agent(t, nil)
			result, failed := use(t, session, tc.tool, tc.args)
			assert.Equal(t, failed, tc.failed, "%v", result)
			assert.Equal(t, result[tc.key], tc.want, "%v", result)
		})
	}
}

// States are listed, but no container is made of one: the message is that of the command.
func TestAgentsAreToldThatAStateIsNoContainer(t *testing.T) {
	f := newFixture()
	eng := f.agentEngine()
	state := firstSnapshot()
	state.ID, state.Kind, state.Line, state.Container = secondID, labels.KindState, "chat", labels.Container{Name: "chat"}
	eng.list = []catalog.Snapshot{state}
	session, _ := f.agent(t, nil)
	listed, failed := use(t, session, "list_snapshots", nil)
	assert.Assert(t, !failed)
	assert.Equal(t, listed["snapshots"].([]any)[0].(map[string]any)["kind"], "state")
	eng.err = &catalog.StateError{ID: state.ID, Line: "chat"}
	for _, tool := range []string{"restore_copy", "restore_in_place", "preview_restore"} {
		result, failed := use(t, session, tool, map[string]any{"snapshot": string(state.ID)})
		assert.Assert(t, failed)
		assert.Equal(t, result["code"], "usage")
		assert.Equal(t, result["error"], describe(eng.err))
	}
}

// What create does once its result is out is done for agents, too.
func TestASnapshotOfAnAgentIsFollowedByATidy(t *testing.T) {
	f := newFixture()
	eng := f.agentEngine()
	f.environment = map[string]string{variableContainer: "web", variableRunID: "fix-42"}
	session, _ := f.agent(t, nil)
	eng.created.Trigger = labels.TriggerAgent
	use(t, session, "create_snapshot", map[string]any{"container": "web"})
	assert.Equal(t, eng.create.RunID, "fix-42")
	use(t, session, "create_snapshot", map[string]any{"container": "db", "step_id": "7"})
	assert.Equal(t, eng.create.RunID, "")
	assert.Equal(t, eng.create.Trigger, labels.TriggerAgent)
	assert.Equal(t, eng.create.StepID, "7")
	assert.DeepEqual(t, f.tidied, []bool{false, false}) // the limits are applied
}

func TestAgentsUndoTheLatestRestore(t *testing.T) {
	f := newFixture()
	eng := f.agentEngine()
	safety := secondSnapshot()
	eng.undoes = []replace.Options{{Only: []string{"data"}, Undoes: &safety}}
	session, _ := f.agent(t, nil)
	result, failed := use(t, session, "undo_restore", map[string]any{"container": "web"})
	assert.Assert(t, !failed)
	assert.Equal(t, result["status"], "restored")
	assert.DeepEqual(t, eng.replace.Only, []string{"data"})
	assert.Assert(t, eng.replace.Wait)

	eng.undoes = append(eng.undoes, eng.undoes[0]) // another container went back with it
	result, failed = use(t, session, "undo_restore", map[string]any{"container": "web"})
	assert.Assert(t, failed)
	assert.Assert(t, is.Contains(fmt.Sprint(result["error"]), "this takes back all of them: docker snapshot undo web"))
}

func TestToolsTellHowDangerousTheyAre(t *testing.T) {
	f := newFixture()
	f.agentEngine()
	session, _ := f.agent(t, nil)
	list, err := session.ListTools(t.Context(), nil)
	assert.NilError(t, err)
	got := map[string]string{}
	for _, tool := range list.Tools {
		hints := ""
		if tool.Annotations.ReadOnlyHint {
			hints += "reads "
		}
		if *tool.Annotations.DestructiveHint {
			hints += "destroys "
		}
		if tool.Annotations.IdempotentHint {
			hints += "once"
		}
		got[tool.Name] = hints
	}
	assert.DeepEqual(t, got, map[string]string{
		"create_snapshot": "", "list_snapshots": "reads once", "inspect_snapshot": "reads once", "preview_restore": "reads once",
		"fork_snapshot": "", "diff_snapshot": "reads once", "read_file": "reads once",
		"restore_copy": "", "restore_in_place": "destroys once", "undo_restore": "destroys ", "remove_snapshot": "destroys once",
	})

	session, _ = f.agent(t, nil, "--read-only")
	list, err = session.ListTools(t.Context(), nil)
	assert.NilError(t, err)
	assert.Equal(t, len(list.Tools), 5)
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "remove_snapshot", Arguments: map[string]any{"snapshot": "before"}})
	assert.ErrorContains(t, err, "remove_snapshot")
}

func TestAgentsAreKeptToTheirContainers(t *testing.T) {
	f := newFixture()
	eng := f.agentEngine()
	session, _ := f.agent(t, nil, "--container", "web")
	for tool, args := range map[string]map[string]any{
		"create_snapshot": {"container": "db"}, "list_snapshots": {"container": "db"}, "undo_restore": {"container": "db"},
		"inspect_snapshot": {"snapshot": string(secondID)}, "preview_restore": {"snapshot": string(secondID)}, "restore_copy": {"snapshot": string(secondID)},
		"fork_snapshot": {"snapshot": string(secondID), "count": 2}, "diff_snapshot": {"snapshot": string(firstID), "with": string(secondID)},
		"read_file": {"snapshot": string(secondID), "path": "/etc/hosts"}, "restore_in_place": {"snapshot": string(secondID)}, "remove_snapshot": {"snapshot": string(secondID)},
	} {
		result, failed := use(t, session, tool, args)
		assert.Assert(t, failed, "%s: %v", tool, result)
		assert.Equal(t, result["code"], "usage", tool)
	}
	assert.Equal(t, eng.calls, 0)
	assert.Equal(t, len(eng.removed), 0)
	result, failed := use(t, session, "list_snapshots", nil)
	assert.Assert(t, !failed)
	assert.Assert(t, is.Len(result["snapshots"], 1))
}

func TestAgentsHearOfProgress(t *testing.T) {
	f := newFixture()
	eng := f.agentEngine()
	eng.events = []plan.Event{{Level: plan.LevelStatus, Phase: "commit", Text: "committing"}, {Level: plan.LevelWarning, Text: "/data/socket is lost"}}
	heard := make(chan string, 9)
	session, _ := f.agent(t, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		heard <- r.Params.Message
	}})
	params := &mcp.CallToolParams{Name: "create_snapshot", Arguments: map[string]any{"container": "web"}}
	params.SetProgressToken("1")
	_, err := session.CallTool(t.Context(), params)
	assert.NilError(t, err)
	assert.Equal(t, <-heard, "committing")
	assert.Equal(t, <-heard, "/data/socket is lost")
}

// slowEngine creates until its context ends.
type slowEngine struct {
	printingEngine
	begun, rolledBack chan struct{}
}

func (e *slowEngine) Create(ctx context.Context, _ capture.Options, _ plan.Progress) (capture.Created, error) {
	close(e.begun)
	<-ctx.Done()
	close(e.rolledBack)
	return capture.Created{}, ctx.Err()
}

func TestACancelledCallIsRolledBack(t *testing.T) {
	f := newFixture()
	eng := &slowEngine{begun: make(chan struct{}), rolledBack: make(chan struct{})}
	f.evil = eng
	session, ended := f.agent(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-eng.begun
		cancel()
	}()
	_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "create_snapshot", Arguments: map[string]any{"container": "web"}})
	assert.Assert(t, errors.Is(err, context.Canceled), "%v", err)
	<-eng.rolledBack
	assert.NilError(t, session.Close())
	assert.NilError(t, <-ended)
}

// A client may close stdin early, as a shell does that pipes requests in. It still gets each answer.
func TestAnswersAreWrittenAfterStdinHasEnded(t *testing.T) {
	f := newFixture()
	eng := &waitingEngine{begun: make(chan struct{}), goOn: make(chan struct{})}
	eng.created = capture.Created{Snapshot: firstSnapshot()}
	f.evil = eng
	session, ended, end := f.agentOverPipe(t, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_snapshot", Arguments: map[string]any{"container": "web"}})
		answered <- err
	}()
	<-eng.begun
	assert.NilError(t, end.stdin.Close())
	close(eng.goOn)
	assert.NilError(t, <-answered)
	assert.NilError(t, <-ended)
}

// waitingEngine creates once it may go on.
type waitingEngine struct {
	printingEngine
	begun, goOn chan struct{}
}

func (e *waitingEngine) Create(ctx context.Context, _ capture.Options, _ plan.Progress) (capture.Created, error) {
	close(e.begun)
	<-e.goOn
	return e.created, ctx.Err()
}

// One wrong line ends nothing: it is answered, and so are the others.
func TestALineThatIsNoMessageIsAnswered(t *testing.T) {
	const (
		hello  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		ready  = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		list   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
		broken = `{"jsonrpc":`
	)
	f := newFixture()
	f.agentEngine()
	input := strings.Join([]string{broken, hello, "", "[]", ready, `{"jsonrpc":"1.0","id":9}`, "hello " + list, strings.Repeat("x", maxLine+1), list}, "\r\n")
	d := f.deps()
	var out bytes.Buffer
	d.in, d.out = streams.NewIn(io.NopCloser(strings.NewReader(input))), terminal{streams.NewOut(&out)}
	assert.NilError(t, runMCP(t.Context(), d, mcpOptions{}))
	codes, answered := map[int64]int{}, map[float64]bool{}
	for line := range strings.Lines(out.String()) {
		var answer struct {
			ID    any            `json:"id"`
			Error *jsonrpc.Error `json:"error"`
		}
		assert.NilError(t, json.Unmarshal([]byte(line), &answer))
		if answer.Error != nil {
			assert.Assert(t, strings.Contains(line, `"id":null`), line)
			codes[answer.Error.Code]++
			continue
		}
		answered[answer.ID.(float64)] = true
	}
	assert.DeepEqual(t, codes, map[int64]int{jsonrpc.CodeParseError: 3, jsonrpc.CodeInvalidRequest: 2})
	assert.DeepEqual(t, answered, map[float64]bool{1: true, 2: true})
}

// The server ends once the calls are rolled back.
func TestASignalCancelsCalls(t *testing.T) {
	f := newFixture()
	eng := &slowEngine{begun: make(chan struct{}), rolledBack: make(chan struct{})}
	f.evil = eng
	session, ended, end := f.agentOverPipe(t, nil)
	go func() {
		_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_snapshot", Arguments: map[string]any{"container": "web"}})
	}()
	<-eng.begun
	end.interrupt()
	assert.Assert(t, errors.Is(<-ended, context.Canceled))
	select {
	case <-eng.rolledBack:
	default:
		t.Fatal("the server ended before the call did")
	}
}
