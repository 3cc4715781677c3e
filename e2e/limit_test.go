//go:build e2e

package e2e

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// scriptLimit is how long a script may take. What waits for ever would have the whole run end without a word of what it was.
const scriptLimit = 8 * time.Minute

// answerPatience is how long an engine may take to answer one question about a script that is over.
const answerPatience = 2 * time.Minute

// limit ends what the script with this prefix has started if that is still there after a while, until stop is called. The plugin
// prints first what it waits for.
func limit(after time.Duration, prefix string, t interface{ Log(args ...any) }) (stop func() bool) {
	return time.AfterFunc(after, func() {
		t.Log("the script is ended: it has taken", after)
		signalAll(processes("P="+prefix, "docker-snapshot"), syscall.SIGQUIT)
		time.Sleep(time.Second)
		signalAll(processes("P="+prefix, ""), syscall.SIGKILL)
	}).Stop
}

// TestLimit has a program of a script that waits for ever, in a session of its own, and one of another script.
func TestLimit(t *testing.T) {
	start := func(prefix string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "sh", "-c", "exec sleep 1000")
		c.Env = append(c.Environ(), "P="+prefix)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		assert.NilError(t, c.Start())
		return c
	}
	ours, theirs := start("limit-ours"), start("limit-theirs")
	defer limit(time.Second, "limit-ours", t)()
	assert.Error(t, ours.Wait(), "signal: killed")
	assert.Equal(t, len(processes("P=limit-ours", "")), 0)
	assert.Assert(t, len(processes("P=limit-theirs", "")) > 0)
	signalAll(processes("P=limit-theirs", ""), syscall.SIGKILL)
	assert.Error(t, theirs.Wait(), "signal: killed")
}
