package snapshot

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/copies"
	"github.com/cua-snapshot/docker-snapshot/snapshot/enginetest"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// The engine takes /data/ for /data, and refuses to mount anything there twice.
func TestMountPointsThatAreNotCleanPaths(t *testing.T) {
	for name, test := range map[string]struct {
		config container.Config
		host   container.HostConfig
	}{
		"bind":            {host: container.HostConfig{Binds: []string{"data:/data/"}}},
		"read-only bind":  {host: container.HostConfig{Binds: []string{"data:/./data:ro"}}},
		"mount":           {host: container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: "data", Target: "/srv//data"}}}},
		"anonymous bind":  {host: container.HostConfig{Binds: []string{"/anonymous/"}}},
		"anonymous mount": {host: container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/anonymous/"}}}},
		"image":           {config: container.Config{Volumes: map[string]struct{}{"/anonymous/": {}}}},
		"tmpfs beside it": {host: container.HostConfig{Tmpfs: map[string]string{"/run/": ""}, Binds: []string{"data:/data/"}}},
	} {
		t.Run(name, func(t *testing.T) {
			docker := enginetest.New()
			web := docker.Create(t, "web", &test.config, &test.host)
			docker.FindVolume(web.Mounts[0].Name).Content = "one"
			snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})

			_, err := engineOf(docker).Restore(t.Context(), runconfig.RestoreOptions{Snapshot: "web:one", Name: "copy"}, nil)
			assert.NilError(t, err)
			assert.Equal(t, len(docker.FindContainer("copy").Mounts), 1)
			assert.Assert(t, docker.FindContainer("copy").Mounts[0].Name != web.Mounts[0].Name, "the copy has the original's volume")
			_, err = engineOf(docker).Fork(t.Context(), copies.ForkOptions{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}, Count: 2}, nil)
			assert.NilError(t, err)

			_, err = engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
			assert.NilError(t, err)
			restored := docker.FindContainer("web")
			assert.Equal(t, len(restored.Mounts), 1)
			assert.Equal(t, restored.Mounts[0].Name, web.Mounts[0].Name)
		})
	}
}

// A restore in place leaves the mount points as the user wrote them.
func TestReplaceKeepsMountPointsAsWritten(t *testing.T) {
	docker := enginetest.New()
	web := docker.Create(t, "web", &container.Config{}, &container.HostConfig{Binds: []string{"data:/data/:ro", "more:/more//"}})
	docker.FindVolume("data").Content = "one"
	snapshotOf(t, docker, capture.Options{Container: "web", Name: "one"})

	_, err := engineOf(docker).Replace(t.Context(), replace.Options{RestoreOptions: runconfig.RestoreOptions{Snapshot: "web:one"}}, nil)
	assert.NilError(t, err)
	assert.Assert(t, docker.FindContainer("web").ID != web.ID)
	assert.DeepEqual(t, docker.FindContainer("web").Host.Binds, []string{"data:/data/:ro", "more:/more//"})
}
