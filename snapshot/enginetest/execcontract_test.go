package enginetest

import (
	"errors"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

func execBehaviours() map[string]func(*testing.T, contractEngine) {
	run := func(t *testing.T, c contractEngine, id string, command ...string) error {
		t.Helper()
		_, err := dockerop.New(c, nil).RunExec(t.Context(), dockerop.Exec{Container: id, Command: command, Timeout: time.Minute, Mark: t.Name()})
		return err
	}
	return map[string]func(*testing.T, contractEngine){
		"a command runs to its end": func(t *testing.T, c contractEngine) {
			assert.NilError(t, run(t, c, c.running(t, "c"), "true"))
		},
		"a command in a paused container is an error that may pass": func(t *testing.T, c contractEngine) {
			id := c.running(t, "c")
			assert.NilError(t, c.ContainerPause(t.Context(), id))
			assert.Assert(t, dockerop.IsExecRetriable(run(t, c, id, "true")))
			assert.NilError(t, c.ContainerUnpause(t.Context(), id))
		},
		"a command in a container that does not run is an error that will not": func(t *testing.T, c contractEngine) {
			id := c.running(t, "c")
			assert.NilError(t, c.forceRemoveContainer(t.Context(), id))
			err := run(t, c, id, "true")
			assert.Assert(t, err != nil && !dockerop.IsExecRetriable(err), "%v", err)
		},
		"a command that takes too long is ended, with all that it has started": func(t *testing.T, c contractEngine) {
			id := c.running(t, "c")
			if fake, ok := c.contractDocker.(*Docker); ok {
				fake.OnExec = func(x *FakeExec) { x.Hangs = x.Mark != "" }
			}
			_, err := dockerop.New(c, nil).RunExec(t.Context(), dockerop.Exec{
				Container: id, Command: []string{"sh", "-c", "sleep 500 & setsid sleep 501 & sleep 502"}, Timeout: time.Second, Mark: "contract",
			})
			late, ok := errors.AsType[*dockerop.ExecError](err)
			assert.Assert(t, ok && late.TimedOut == time.Second && late.Left == nil, "%v", err)
			if _, ok := c.contractDocker.(*Docker); !ok {
				assert.NilError(t, run(t, c, id, "sh", "-c", `for p in /proc/[0-9]*; do case "$(tr "\\0" " " <$p/cmdline)" in "sleep 50"*) exit 1 ;; esac; done`))
			}
		},
	}
}
