package runconfig

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestWhatBecomesAnonymous(t *testing.T) {
	id := strings.Repeat("0f", 32)
	m := func(change func(*labels.Mount)) labels.Mount {
		m := labels.Mount{Type: "volume", Name: id, Destination: "/data", Driver: "local", RW: true, Anonymous: true}
		change(&m)
		return m
	}
	tests := map[string]struct {
		m    labels.Mount
		host container.HostConfig
		more []labels.Mount
		want bool
	}{
		"anonymous":             {m(func(*labels.Mount) {}), container.HostConfig{}, nil, true},
		"a volume that is gone": {m(func(m *labels.Mount) { m.Driver = "" }), container.HostConfig{VolumeDriver: "local"}, nil, true},
		"named":                 {m(func(m *labels.Mount) { m.Anonymous = false }), container.HostConfig{}, nil, false},
		"read-only":             {m(func(m *labels.Mount) { m.RW = false }), container.HostConfig{}, nil, false},
		"a part of it":          {m(func(m *labels.Mount) { m.Subpath = "part" }), container.HostConfig{}, nil, false},
		"with options":          {m(func(m *labels.Mount) { m.Options = map[string]string{"size": "1g"} }), container.HostConfig{}, nil, false},
		"of another driver":     {m(func(m *labels.Mount) { m.Driver = "nfs" }), container.HostConfig{}, nil, false},
		"the container's volumes are of another driver": {m(func(*labels.Mount) {}), container.HostConfig{VolumeDriver: "nfs"}, nil, false},
		"mounted twice":          {m(func(*labels.Mount) {}), container.HostConfig{}, []labels.Mount{m(func(m *labels.Mount) { m.Destination = "/again" })}, false},
		"of another container's": {m(func(*labels.Mount) {}), container.HostConfig{VolumesFrom: []string{"peer"}}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sp := Spec{Host: test.host}
			assert.Equal(t, sp.BecomesAnonymous(test.m, append(test.more, test.m)), test.want)
		})
	}
}

func TestMountAnonymousTakesTheNameOut(t *testing.T) {
	id := strings.Repeat("0f", 32)
	declared := container.Config{Volumes: map[string]struct{}{"/data/": {}}}
	tests := map[string]struct {
		before Spec
		want   container.HostConfig
	}{
		"declared by the image": {Spec{Config: declared}, container.HostConfig{}},
		"declared, and mounted by its name": {
			Spec{Config: declared, Host: container.HostConfig{Binds: []string{"/data:/data/sub", id + ":/data:nocopy"}}}, container.HostConfig{Binds: []string{"/data:/data/sub"}},
		},
		"mounted by its name": {
			Spec{Host: container.HostConfig{Binds: []string{id + ":/data"}}},
			container.HostConfig{Binds: []string{}, Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/data"}}},
		},
		"a destination alone": {Spec{Host: container.HostConfig{Binds: []string{"/data"}}}, container.HostConfig{Binds: []string{"/data"}}},
		"a mount with options": {
			Spec{Host: container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: id, Target: "/data", VolumeOptions: &mount.VolumeOptions{
				NoCopy: true, Labels: map[string]string{"own": "1", "com.docker.compose.project": "shop", LabelAnonymous: ""}, DriverConfig: &mount.Driver{Name: "local"},
			}}}}},
			container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Target: "/data", VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: map[string]string{"own": "1"}}}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.before.MountAnonymous(labels.Mount{Name: id, Destination: "/data"})
			assert.DeepEqual(t, test.before.Host, test.want)
		})
	}
}
