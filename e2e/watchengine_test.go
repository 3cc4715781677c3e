//go:build e2e

package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gotest.tools/v3/assert"
)

// TestWatchSurvivesTheEngine restarts and kills the engine while a container is watched. It has an engine of its own, so
// that it can watch all containers.
func TestWatchSurvivesTheEngine(t *testing.T) {
	e := startEngine(t)
	e.docker("run", "--detach", "--init", "--name", "web", "--restart", "always", "--label", "cua.snapshot.policy.interval=2s",
		"--label", "cua.snapshot.policy.keep=3", "--volume", "data:/data", "busybox", "sleep", "1000")
	e.docker("run", "--detach", "--init", "--name", "other", "busybox", "sleep", "1000")
	var log lockedBuffer
	watch := exec.CommandContext(t.Context(), filepath.Join(configDir, "cli-plugins", "docker-snapshot"), "watch")
	watch.Stdout, watch.Stderr = &log, &log
	assert.NilError(t, watch.Start())
	heard := func(text string, times int) {
		t.Helper()
		enough := func() bool { return strings.Count(log.String(), text) >= times }
		assert.Assert(t, eventually(enough), "%d times %q:\n%s", times, text, log.String())
	}
	took := func() int { return strings.Count(log.String(), "event=snapshot container=web") }
	heard("event=snapshot container=web", 1)
	for i, verb := range []string{"restart", "kill"} {
		e.run(t, verb)
		heard("level=error event=away", i+1)
		if verb == "kill" {
			e.run(t, "restart")
		}
		heard("event=back", i+1)
		heard("event=snapshot container=web", took()+2)
	}
	assert.NilError(t, watch.Process.Signal(syscall.SIGTERM))
	assert.NilError(t, watch.Wait(), "%s", log.String())
	t.Log(log.String())
	assert.Assert(t, !strings.Contains(log.String(), "container=other"))
	kept := strings.Fields(e.docker("snapshot", "ls", "--quiet"))
	assert.Assert(t, len(kept) >= 3 && len(kept) <= 4, "%q", kept)
	assert.Equal(t, e.docker("ps", "--filter", "status=paused", "--quiet"), "")
}

// lockedBuffer keeps what another process writes, and can be read meanwhile.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
