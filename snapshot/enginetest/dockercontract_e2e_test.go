//go:build e2e

package enginetest

import (
	"testing"

	"github.com/docker/docker/client"
	"gotest.tools/v3/assert"
)

// The engine is the one of DOCKER_HOST; it needs an image busybox.
func TestEngineKeepsTheContract(t *testing.T) {
	runContract(t, func(t *testing.T) contractDocker {
		t.Helper()
		docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
		assert.NilError(t, err)
		t.Cleanup(func() { assert.NilError(t, docker.Close()) })
		return docker
	})
}
