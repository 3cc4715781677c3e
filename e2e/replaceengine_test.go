//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// TestReplaceSurvivesTheEngine ends the engine in every phase of a restore in place. When it is back, one command puts
// everything right. It has an engine of its own.
func TestReplaceSurvivesTheEngine(t *testing.T) {
	e := startEngine(t)
	e.docker("run", "--detach", "--name", "web", "--restart", "always", "--volume", "data:/data", "--volume", "/anonymous", "busybox",
		"sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait")
	e.docker("exec", "web", "sh", "-c", "seq 100000 >/data/numbers; echo one >/anonymous/file")
	e.docker("snapshot", "create", "web", "one")
	e.docker("exec", "web", "sh", "-c", "seq 7 90000 >/data/numbers; touch /data/extra; echo two >/anonymous/file")
	before, err := takePicture(docker, "web")
	assert.NilError(t, err)
	for n, tc := range []struct{ phase, verb, next string }{
		{"writing to the store", "kill", "create web"},
		{"restoring volumes", "kill", "recover web"},
		{"waiting 2s", "restart", "recover"},
		{"creating container", "restart", "recover"},
		{"stopping container", "kill", "recover"},
		{"starting container", "kill", "create web"},
		{"creating container", "kill", "recover"},
		{"waiting 2s", "kill", "recover"},
		{"starting container", "restart", "recover web"},
		{"stopping container", "restart", "recover"},
		{"restoring volumes", "restart", "create web"},
		{"writing to the store", "restart", "create web"},
	} {
		if (n%2 == 0) != (theEngine.name == "debian") || n >= 2*rounds() {
			continue // each engine has every other one
		}
		t.Run(tc.verb+" while "+tc.phase, func(t *testing.T) {
			e.endDuring(t, tc.phase, tc.verb)
			e.run(t, "restart")
			out, err := e.snapshot(tc.next)
			if e.hasStaleTask() { // a user would restart the machine
				t.Logf("%s, while the engine is stuck: %s (%v)", tc.next, out, err)
				e.run(t, "restart")
				out, err = e.snapshot(tc.next)
			}
			t.Logf("%s: %s", tc.next, out)
			assert.NilError(t, err)
			t.Log(e.docker("ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.Status}} {{.CreatedAt}} {{.Labels}}"))
			after, err := takePicture(docker, "web")
			assert.NilError(t, err)
			assert.Equal(t, after, before)
			// The guard of the client that was cut off may still be at work; its worker goes with it.
			var left string
			alone := func() bool {
				left = e.docker("ps", "--all", "--format", "{{.Names}}")
				return left == "web"
			}
			assert.Assert(t, eventually(alone), "%s", left)
			address := e.docker("inspect", "--format", "{{.NetworkSettings.Networks.bridge.IPAddress}}", "web")
			assert.Assert(t, address != "", "it has no network")
		})
	}
	// As if nothing had happened.
	e.docker("snapshot", "restore", "--replace", "--force", "--settle", "0s", "web:one")
	assert.Equal(t, e.docker("exec", "web", "cat", "/anonymous/file"), "one")
}

// ownEngine is an engine that a test may do anything to.
type ownEngine struct {
	t   *testing.T
	dir string
}

func startEngine(t *testing.T) *ownEngine {
	e := &ownEngine{t: t, dir: filepath.Join(t.TempDir(), "engine")}
	e.run(t, "start", theEngine.name)
	t.Cleanup(func() { e.run(t, "stop") })
	t.Setenv("DOCKER_HOST", "unix://"+e.dir+"/docker.sock")
	t.Setenv("DOCKER_CONFIG", configDir)
	e.makeImage(t)
	return e
}

// makeImage makes the image busybox on the engine.
func (e *ownEngine) makeImage(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "./image.sh", "busybox").CombinedOutput()
	assert.NilError(t, err, "%s", out)
}

// run calls engine.sh without a terminal, so that the engine outlives it.
func (e *ownEngine) run(t *testing.T, verb string, args ...string) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "./engine.sh", append([]string{verb, "--dir", e.dir}, args...)...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	assert.NilError(t, err)
	defer log.Close()
	command.Stdout, command.Stderr = log, log // a pipe would be held open by the engine
	err = command.Run()
	said, _ := os.ReadFile(log.Name())
	assert.NilError(t, err, "engine.sh %s: %s", verb, said)
}

func (e *ownEngine) docker(args ...string) string {
	e.t.Helper()
	out, err := docker(args...)
	assert.NilError(e.t, err)
	return out
}

// snapshot runs a command of the plugin.
func (e *ownEngine) snapshot(command string) ([]byte, error) {
	return exec.Command("docker", append([]string{"snapshot"}, strings.Fields(command)...)...).CombinedOutput()
}

// hasStaleTask tells whether the engine cannot start a container because it keeps a process of its earlier run. That happens to
// engine 20.10 if it is killed while a container ends; engine.sh ends such processes when it restarts the engine.
func (e *ownEngine) hasStaleTask() bool {
	e.t.Helper()
	for id := range strings.FieldsSeq(e.docker("ps", "--all", "--quiet", "--filter", "status=exited", "--filter", "status=created")) {
		said := e.docker("inspect", "--format", "{{.State.Error}}", id)
		if strings.Contains(said, ": already exists") || strings.Contains(said, ": file exists") {
			return true
		}
	}
	return false
}

// endDuring restores in place, and ends the engine when the restore reports a certain phase.
func (e *ownEngine) endDuring(t *testing.T, phase, verb string) {
	t.Helper()
	restore := exec.CommandContext(t.Context(), "docker", "snapshot", "restore", "--replace", "--force", "--progress", "json", "web:one")
	said, err := restore.StderrPipe()
	assert.NilError(t, err)
	assert.NilError(t, restore.Start())
	var all bytes.Buffer
	ended := false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if !ended && strings.Contains(lines.Text(), `"`+phase) {
			ended = true
			e.run(t, verb)
		}
	}
	assert.Assert(t, ended, "it was never at %s:\n%s", phase, all.String())
	t.Log(all.String())
	assert.Assert(t, restore.Wait() != nil, "it got through:\n%s", all.String())
}
