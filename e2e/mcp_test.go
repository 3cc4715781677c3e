//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An agent takes a snapshot, brings it back, undoes that, and cancels: no container stays paused.
func TestMCP(t *testing.T) {
	prefix := "mcp-" + strings.ToLower(rand.Text()[:8])
	web, volume, store := prefix+"-web", prefix+"-data", prefix+"-store"
	must := func(args ...string) string {
		t.Helper()
		out, err := docker(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Cleanup(func() {
		_, _ = docker("rm", "--force", web)
		for id := range strings.FieldsSeq(must("snapshot", "ls", "-q", "--filter", "container="+web)) {
			_, _ = docker("snapshot", "rm", "--force", id)
		}
		_, _ = docker("volume", "rm", "--force", volume, store)
	})
	t.Setenv(storeVariable, store)
	must("run", "-d", "--name", web, "--stop-signal", "KILL", "-v", volume+":/data", "busybox", "sleep", "1000")
	must("exec", web, "sh", "-c", "echo before >/data/state")

	reading := make(chan struct{}, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			select {
			case reading <- struct{}{}:
			default:
			}
		},
	})
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{
		Command: exec.Command("docker", "snapshot", "mcp", "--container", web), TerminateDuration: time.Minute,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	use := func(tool string, args map[string]any) map[string]any {
		t.Helper()
		called, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(called.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		result := map[string]any{}
		if err := json.Unmarshal(raw, &result); err != nil || called.IsError {
			t.Fatalf("%s: %s (%v)", tool, raw, err)
		}
		return result
	}

	made := use("create_snapshot", map[string]any{"container": web, "name": "before"})
	must("exec", web, "sh", "-c", "echo after >/data/state")
	use("preview_restore", map[string]any{"snapshot": web + ":before", "in_place": true})
	use("restore_in_place", map[string]any{"snapshot": made["id"]})
	if got := must("exec", web, "cat", "/data/state"); got != "before" {
		t.Fatalf("restored in place: %q", got)
	}
	if read := use("read_file", map[string]any{"snapshot": made["id"], "path": "/data/state"}); read["content"] != "before\n" {
		t.Fatalf("read from the snapshot: %q", read)
	}
	if made["trigger"] != "agent" {
		t.Fatalf("the trigger is %q", made["trigger"])
	}
	use("undo_restore", map[string]any{"container": web})
	if got := must("exec", web, "cat", "/data/state"); got != "after" {
		t.Fatalf("undone: %q", got)
	}

	must("exec", web, "sh", "-c", "cd /data && seq 20000 | xargs touch && dd if=/dev/urandom of=large bs=1M count=64 2>/dev/null")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reading
		cancel()
	}()
	params := &mcp.CallToolParams{Name: "create_snapshot", Arguments: map[string]any{"container": web}}
	params.SetProgressToken("create")
	if _, err := session.CallTool(ctx, params); err == nil {
		t.Fatal("the call was not cancelled")
	}
	// The server rolls back after it has answered; a call on the same container waits for that.
	use("create_snapshot", map[string]any{"container": web, "name": "later"})
	if state := must("inspect", "--format", "{{.State.Status}}", web); state != "running" {
		t.Fatalf("after a cancelled call the container is %s", state)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
}

// With --read-only an agent has no tool that changes anything.
func TestMCPReadOnly(t *testing.T) {
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{
		Command: exec.Command("docker", "snapshot", "mcp", "--read-only", "--lock-timeout", "1h", "--store", "mcp-none"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("it offers %s", tool.Name)
		}
	}
}

// States are listed, and no container is made of one.
func TestMCPStates(t *testing.T) {
	line := "mcp-" + strings.ToLower(rand.Text()[:8])
	t.Setenv(storeVariable, line)
	id, err := docker("snapshot", "create", "--state-only", "--line", line)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = docker("snapshot", "rm", "--force", id)
		_, _ = docker("volume", "rm", "--force", line)
	})
	_, refused := docker("snapshot", "restore", id)
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command("docker", "snapshot", "mcp")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for tool, want := range map[string]string{"list_snapshots": `"kind":"state"`, "restore_copy": "is a state of line " + line, "restore_in_place": "is a state of line " + line} {
		args := map[string]any{"snapshot": id}
		if tool == "list_snapshots" {
			args = map[string]any{"container": line}
		}
		called, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		text := called.Content[0].(*mcp.TextContent).Text
		if !called.IsError {
			text = called.Content[1].(*mcp.TextContent).Text
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", tool, text)
		}
		if called.IsError && !strings.Contains(refused.Error(), text) {
			t.Errorf("%s says %q, and the command %q", tool, text, refused)
		}
	}
}
