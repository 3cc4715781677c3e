package commands

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"

	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/diff"
	"github.com/cua-snapshot/docker-snapshot/snapshot/extract"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/changes"
)

// All of them are in the context of every model that has the server.
func TestTheListOfToolsIsSmall(t *testing.T) {
	f := newFixture()
	f.agentEngine()
	session, _ := f.agent(t, nil)
	list, err := session.ListTools(t.Context(), nil)
	assert.NilError(t, err)
	raw, err := json.Marshal(list)
	assert.NilError(t, err)
	assert.Assert(t, len(raw) < 12_000, "%d bytes", len(raw))
	page, err := os.ReadFile("../docs/mcp.md")
	assert.NilError(t, err)
	help := newMCPCommand(f.deps()).Long
	for _, tool := range list.Tools {
		assert.Assert(t, strings.Contains(string(page), "| `"+tool.Name+"` |"), tool.Name)
		assert.Assert(t, strings.Contains(help, tool.Name), tool.Name)
	}
}

// A list has 20 entries, and says how many are left.
func TestAgentsTurnPages(t *testing.T) {
	f := newFixture()
	eng := f.agentEngine()
	eng.list = slices.Repeat([]catalog.Snapshot{firstSnapshot()}, 45)
	session, _ := f.agent(t, nil)
	for skip, want := range map[int][2]int{0: {20, 25}, 20: {20, 5}, 40: {5, 0}, 60: {0, 0}} {
		result, failed := use(t, session, "list_snapshots", map[string]any{"skip": skip})
		assert.Assert(t, !failed)
		assert.Assert(t, is.Len(result["snapshots"], want[0]), "%d", skip)
		assert.Equal(t, result["more"], float64(want[1]), "%d", skip)
	}
	called, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_snapshots", Arguments: map[string]any{"skip": 20}})
	assert.NilError(t, err)
	assert.Equal(t, called.Content[0].(*mcp.TextContent).Text, "45 snapshots, the newest first. There are 5 more: call again with skip 40.")
	raw, err := json.Marshal(called)
	assert.NilError(t, err)
	assert.Assert(t, len(raw) < 16_000, "%d bytes", len(raw))
}

func TestAgentsReadAFile(t *testing.T) {
	for name, tc := range map[string]struct {
		content           string
		encoding, encoded string
	}{
		"text":   {"a\nb\n", "text", "a\nb\n"},
		"empty":  {"", "text", ""},
		"binary": {"\xff\x00", "base64", "/wA="},
		"large":  {strings.Repeat("x", mcpFileMost), "text", strings.Repeat("x", mcpFileMost)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.evil = &readingEngine{f.agentEngine(), tc.content}
			session, _ := f.agent(t, nil)
			result, failed := use(t, session, "read_file", map[string]any{"snapshot": "before", "path": "/etc/conf"})
			assert.Assert(t, !failed, "%v", result)
			assert.Equal(t, result["encoding"], tc.encoding)
			assert.Equal(t, result["content"], tc.encoded)
			assert.Equal(t, result["bytes"], float64(len(tc.content)))
		})
	}
	f := newFixture()
	f.evil = &readingEngine{f.agentEngine(), strings.Repeat("x", mcpFileMost+1)}
	session, _ := f.agent(t, nil, "--read-only")
	for _, path := range []string{"/etc/conf", "etc/conf"} {
		result, failed := use(t, session, "read_file", map[string]any{"snapshot": "before", "path": path})
		assert.Assert(t, failed)
		assert.Equal(t, result["code"], "usage")
	}
}

// readingEngine finds a file with this content.
type readingEngine struct {
	*printingEngine
	content string
}

func (e *readingEngine) ReadFile(_ context.Context, source extract.Source, _ plan.Progress) ([]byte, error) {
	if source.Path != "/etc/conf" || source.Snapshot.ID != firstID {
		return nil, errors.New("another file")
	}
	return []byte(e.content), nil
}

// A model is shown a part of many changes, and the sums of all.
func TestAgentsAreShownAPartOfTheChanges(t *testing.T) {
	f := newFixture()
	f.evil = &differingEngine{printingEngine: f.agentEngine(), changes: 45}
	session, _ := f.agent(t, nil)
	for skip, want := range map[int][2]int{0: {20, 25}, 40: {5, 0}, 60: {0, 0}} {
		result, failed := use(t, session, "diff_snapshot", map[string]any{"snapshot": "before", "skip": skip, "path": "/data"})
		assert.Assert(t, !failed, "%v", result)
		assert.Assert(t, is.Len(result["list"], want[0]))
		assert.Equal(t, result["more"], float64(want[1]))
		assert.Equal(t, result["counts"].([]any)[0].(map[string]any)["created_entries"], 45.0)
	}

	result, failed := use(t, session, "fork_snapshot", map[string]any{"snapshot": "before", "count": 2})
	assert.Assert(t, !failed, "%v", result)
	assert.Assert(t, is.Len(result["copies"], 2))
}

// differingEngine finds so many new files, and makes copies.
type differingEngine struct {
	*printingEngine
	changes int
}

func (e *differingEngine) Diff(_ context.Context, _ diff.Options, _ plan.Progress, visit func(diff.Change)) error {
	for range e.changes {
		visit(diff.Change{Volume: "data", Destination: "/data", FileChange: volumebackup.FileChange{Path: "new", Type: changes.Created}})
	}
	return nil
}

func (e *differingEngine) Fork(_ context.Context, o copies.ForkOptions, _ plan.Progress) ([]build.Restored, error) {
	return slices.Repeat([]build.Restored{restoredCopy()}, o.Count), nil
}
