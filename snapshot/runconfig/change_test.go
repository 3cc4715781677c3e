package runconfig

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func TestConfigChanges(t *testing.T) {
	old := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			Image: "sha256:bbbbbbbbbbbbbbbbbbbb", HostConfig: &container.HostConfig{PortBindings: nat.PortMap{
				"80/tcp": {{HostIP: "0.0.0.0", HostPort: "8081"}, {HostIP: "::", HostPort: "8081"}}, "22/tcp": {{HostPort: "22"}}, "9/udp": nil,
			}},
		},
		Config: &container.Config{Image: "app:2", Env: []string{"A=1", "SECRET=new", "GOES"}},
		Mounts: []container.MountPoint{
			{Type: mount.TypeVolume, Name: "data", Destination: "/data", RW: true},
			{Type: mount.TypeBind, Source: "/srv", Destination: "/srv"},
			{Type: mount.TypeTmpfs, Destination: "/tmp"},
		},
	}
	s := catalog.Snapshot{Record: labels.Record{
		Container: labels.Container{Image: "app:1", ImageID: "sha256:aaaaaaaaaaaaaaaaaaaa"},
		Mounts: []labels.Mount{
			{Type: "volume", Name: "older", Destination: "/data", RW: true}, {Type: "bind", Source: "/srv", Destination: "/srv"},
		},
	}}
	sp := &Spec{
		Config: container.Config{Env: []string{"A=1", "SECRET=old", "COMES=x=y"}},
		Host:   container.HostConfig{PortBindings: nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: ""}}, "22/tcp": {{HostPort: "22"}}}},
	}
	assert.DeepEqual(t, Changes(old, s, sp), []ConfigChange{
		{What: ConfigImage, Verb: "change", Now: "app:2", Then: "app:1"},
		{What: ConfigEnvironment, Name: "COMES", Verb: "add"},
		{What: ConfigEnvironment, Name: "GOES", Verb: "remove"},
		{What: ConfigEnvironment, Name: "SECRET", Verb: "change"},
		{What: ConfigPort, Name: "80/tcp", Verb: "change", Now: "8081", Then: "127.0.0.1:a free port"},
		{What: ConfigMount, Name: "/data", Verb: "change", Now: "volume data", Then: "volume older"},
	})

	old.Config.Image = "app:1" // the same name, which stands for something else by now
	assert.DeepEqual(t, imageChange(old, s), []ConfigChange{{
		What: ConfigImage, Verb: "change", Now: "app:1 (bbbbbbbbbbbb)", Then: "app:1 (aaaaaaaaaaaa)",
	}})
	old.Config.Labels = map[string]string{labels.KeyRestoredFrom: "20260101-000000-abcdef"}
	assert.Equal(t, len(imageChange(old, s)), 0)
}
