//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"
)

// TestArchivesOutliveAnotherImageStore switches the engine's image store and back, as a checkbox in Docker Desktop does.
// The snapshots of one store are invisible in the other; removing what is visible must leave their archives alone.
func TestArchivesOutliveAnotherImageStore(t *testing.T) {
	if theEngine.name != "moby" {
		t.Skip("engine 20.10 has only one image store")
	}
	e := startEngine(t)
	e.docker("run", "--detach", "--name", "web", "--volume", "data:/data", "busybox", "sleep", "1000")
	e.docker("exec", "web", "sh", "-c", "seq 100000 >/data/numbers")
	numbers := e.docker("exec", "web", "sha256sum", "/data/numbers")
	e.docker("snapshot", "create", "web", "one")

	e.switchImageStore(t, `{"features": {"containerd-snapshotter": false}}`)
	assert.Equal(t, e.docker("info", "--format", "{{.Driver}}"), "overlay2")
	assert.Equal(t, e.docker("snapshot", "ls", "--quiet"), "")
	e.docker("run", "--detach", "--name", "db", "--volume", "data:/data", "busybox", "sleep", "1000")
	e.docker("snapshot", "create", "db", "other")
	e.docker("snapshot", "rm", "db:other")
	e.docker("snapshot", "recover")
	e.docker("rm", "--force", "db")

	e.switchImageStore(t, `{"features": {"containerd-snapshotter": true}}`)
	e.docker("start", "web")
	e.docker("exec", "web", "rm", "/data/numbers")
	e.docker("snapshot", "restore", "--replace", "--force", "--settle", "0s", "web:one")
	assert.Equal(t, e.docker("exec", "web", "sha256sum", "/data/numbers"), numbers)
}

// switchImageStore restarts the engine with another configuration, and makes the image that its other image store lacks.
func (e *ownEngine) switchImageStore(t *testing.T, config string) {
	t.Helper()
	assert.NilError(t, os.WriteFile(filepath.Join(e.dir, "daemon.json"), []byte(config), 0o600))
	e.run(t, "restart")
	e.makeImage(t)
}
