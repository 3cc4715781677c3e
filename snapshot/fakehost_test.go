package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"gotest.tools/v3/assert"
)

// fakeVolume is a volume of a [fakeDocker].
type fakeVolume struct {
	name     string
	options  map[string]string
	labels   map[string]string
	madeWith string // the ID of the container, if it is anonymous: who mounts it by name later does not take it along
	content  string // as far as somebody archives it
}

// mergeConfig completes what a call gives with what is below it: a create call
// with its image, a commit with its container.
func mergeConfig(given, below *container.Config) {
	if given.User == "" {
		given.User = below.User
	}
	if given.WorkingDir == "" {
		given.WorkingDir = below.WorkingDir
	}
	if given.StopSignal == "" {
		given.StopSignal = below.StopSignal
	}
	mergeHealth(given, below.Healthcheck)
	if len(given.Entrypoint) == 0 && len(given.Cmd) == 0 {
		given.Cmd = below.Cmd
	}
	if given.Entrypoint == nil {
		given.Entrypoint = below.Entrypoint
	}
	given.ExposedPorts = union(below.ExposedPorts, given.ExposedPorts)
	given.Volumes = union(below.Volumes, given.Volumes)
	given.Labels = union(below.Labels, given.Labels)
	for _, entry := range below.Env {
		key, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(given.Env, func(e string) bool { return e == key || strings.HasPrefix(e, key+"=") }) {
			given.Env = append(given.Env, entry)
		}
	}
}

// mergeHealth completes each field of the healthcheck by itself.
func mergeHealth(given *container.Config, below *dockerspec.HealthcheckConfig) {
	h := given.Healthcheck
	if h == nil || below == nil {
		given.Healthcheck = cmp.Or(h, below)
		return
	}
	if len(h.Test) == 0 {
		h.Test = below.Test
	}
	h.Interval, h.Timeout = cmp.Or(h.Interval, below.Interval), cmp.Or(h.Timeout, below.Timeout)
	h.StartPeriod, h.StartInterval = cmp.Or(h.StartPeriod, below.StartPeriod), cmp.Or(h.StartInterval, below.StartInterval)
	h.Retries = cmp.Or(h.Retries, below.Retries)
}

// union is both maps; what over says wins.
func union[M ~map[K]V, K comparable, V any](under, over M) M {
	if len(under)+len(over) == 0 {
		return over
	}
	all := M{}
	maps.Copy(all, under)
	maps.Copy(all, over)
	return all
}

// attach gives a new container its endpoints.
func (f *fakeDocker) attach(c *fakeContainer, networking *network.NetworkingConfig) {
	c.endpoints = map[string]*network.EndpointSettings{}
	if networking != nil {
		for name, e := range networking.EndpointsConfig {
			c.endpoints[name] = f.endpoint(name, e)
		}
	}
	mode := c.host.NetworkMode
	if len(c.endpoints) == 0 && !mode.IsContainer() {
		c.endpoints[mode.NetworkName()] = f.endpoint(mode.NetworkName(), nil)
	}
}

// endpoint goes by the network's name, unless it is given an ID.
func (f *fakeDocker) endpoint(name string, asked *network.EndpointSettings) *network.EndpointSettings {
	if asked == nil {
		asked = &network.EndpointSettings{}
	}
	made := clone(asked)
	if made.NetworkID == "" {
		made.NetworkID = f.networks[name]
	}
	return made
}

// mountVolumes makes the volumes that a new container mounts and that are not there.
func (f *fakeDocker) mountVolumes(c *fakeContainer) {
	add := func(name, destination string, rw, anonymous bool) {
		made := &fakeVolume{name: name}
		if anonymous {
			name = f.newID()
			made.name, made.madeWith = name, c.id
		}
		if f.findVolume(name) == nil {
			f.volumes = append(f.volumes, made)
		}
		c.mounts = append(c.mounts, container.MountPoint{
			Type: mount.TypeVolume, Name: name, Source: "/volumes/" + name, Destination: destination, Driver: "local", RW: rw,
		})
	}
	covered := map[string]bool{}
	for _, text := range c.host.Binds {
		b, _ := runconfig.ParseBind(text)
		covered[b.Destination] = true
		if b.IsPath() {
			c.mounts = append(c.mounts, container.MountPoint{Type: mount.TypeBind, Source: b.Source, Destination: b.Destination, RW: !b.Has("ro")})
			continue
		}
		add(b.Source, b.Destination, !b.Has("ro"), false)
	}
	for _, m := range c.host.Mounts {
		covered[m.Target] = true
		if m.Type == mount.TypeVolume {
			add(m.Source, m.Target, !m.ReadOnly, m.Source == "")
		} else {
			c.mounts = append(c.mounts, container.MountPoint{Type: m.Type, Source: m.Source, Destination: m.Target, RW: !m.ReadOnly})
		}
	}
	for _, destination := range slices.Sorted(maps.Keys(c.config.Volumes)) {
		if !covered[destination] {
			add("", destination, true, true)
		}
	}
}

func (f *fakeDocker) findVolume(name string) *fakeVolume {
	at := slices.IndexFunc(f.volumes, func(v *fakeVolume) bool { return v.name == name })
	if at < 0 {
		return nil
	}
	return f.volumes[at]
}

// ports are those of the host that a container holds while it runs.
func (c *fakeContainer) ports() []runconfig.HostPort {
	var ports []runconfig.HostPort
	for port, bindings := range c.host.PortBindings {
		for _, b := range bindings {
			number, err := strconv.ParseUint(b.HostPort, 10, 16)
			if err != nil {
				continue // the engine chooses one that is free
			}
			ip := runconfig.ParseIP(b.HostIP)
			if !ip.IsValid() {
				ip = netip.IPv4Unspecified()
			}
			ports = append(ports, runconfig.HostPort{IP: ip, Port: uint16(number), Proto: port.Proto()})
		}
	}
	return ports
}

func (f *fakeDocker) ClientVersion() string { return f.apiVersion }

// infoNow is what the engine says of itself now.
func (f *fakeDocker) infoNow(t *testing.T) dockerop.Info {
	t.Helper()
	info, err := dockerop.New(f).Identify(t.Context())
	assert.NilError(t, err)
	f.calls = f.calls[:len(f.calls)-1]
	return info
}

func (f *fakeDocker) Info(ctx context.Context) (info system.Info, err error) {
	err = f.do(ctx, "Info", func() error {
		info = clone(f.info)
		info.SystemTime = f.clock.Format(time.RFC3339Nano)
		return nil
	})
	return info, err
}

func (f *fakeDocker) NetworkList(ctx context.Context, _ network.ListOptions) (list []network.Summary, err error) {
	err = f.do(ctx, "NetworkList", func() error {
		for _, name := range slices.Sorted(maps.Keys(f.networks)) {
			list = append(list, network.Summary{Name: name, ID: f.networks[name], Driver: "bridge"})
		}
		return nil
	})
	return list, err
}

func (f *fakeDocker) NetworkConnect(ctx context.Context, name, id string, config *network.EndpointSettings) error {
	return f.withContainer(ctx, "NetworkConnect "+name, id, func(c *fakeContainer) error {
		if f.networks[name] == "" {
			return fmt.Errorf("network %s not found: %w", name, cerrdefs.ErrNotFound)
		}
		c.endpoints[name] = f.endpoint(name, config)
		return nil
	})
}

func (f *fakeDocker) NetworkDisconnect(ctx context.Context, name, id string, _ bool) error {
	return f.withContainer(ctx, "NetworkDisconnect "+name, id, func(c *fakeContainer) error {
		if c.endpoints[name] == nil {
			return fmt.Errorf("container %s is not connected to network %s: %w", id, name, cerrdefs.ErrNotFound)
		}
		delete(c.endpoints, name)
		return nil
	})
}

func (f *fakeDocker) NetworkCreate(ctx context.Context, name string, _ network.CreateOptions) (made network.CreateResponse, err error) {
	err = f.do(ctx, "NetworkCreate "+name, func() error {
		made.ID = f.newID()
		f.networks[name] = made.ID
		return nil
	})
	return made, err
}

func (f *fakeDocker) NetworkRemove(ctx context.Context, name string) error {
	return f.do(ctx, "NetworkRemove "+name, func() error {
		delete(f.networks, name)
		return nil
	})
}

func (f *fakeDocker) VolumeInspect(ctx context.Context, name string) (found volume.Volume, err error) {
	err = f.do(ctx, "VolumeInspect "+name, func() error {
		v := f.findVolume(name)
		if v == nil {
			return fmt.Errorf("get %s: no such volume: %w", name, cerrdefs.ErrNotFound)
		}
		found = clone(volume.Volume{Name: v.name, Driver: "local", Options: v.options, Labels: v.labels})
		return nil
	})
	return found, err
}

// VolumeList lists all volumes: all are of the local driver.
func (f *fakeDocker) VolumeList(ctx context.Context, o volume.ListOptions) (list volume.ListResponse, err error) {
	err = f.do(ctx, "VolumeList", func() error {
		for _, v := range f.volumes {
			if !o.Filters.MatchKVList("label", v.labels) {
				continue
			}
			made := clone(volume.Volume{Name: v.name, Driver: "local", Options: v.options, Labels: v.labels, Mountpoint: "/volumes/" + v.name})
			list.Volumes = append(list.Volumes, &made)
		}
		return nil
	})
	return list, err
}

// Events sends what happens from now on, whatever the filters are.
func (f *fakeDocker) Events(ctx context.Context, _ eventtypes.ListOptions) (<-chan eventtypes.Message, <-chan error) {
	const buffered = 1000
	messages, failed := make(chan eventtypes.Message, buffered), make(chan error, 1)
	err := f.do(ctx, "Events", func() error {
		f.listeners = append(f.listeners, messages)
		return nil
	})
	if err != nil {
		failed <- err
	}
	return messages, failed
}

// tell sends an event to who listens.
func (f *fakeDocker) tell(action eventtypes.Action, c *fakeContainer, comment string) {
	for _, listener := range f.listeners {
		listener <- eventtypes.Message{Type: eventtypes.ContainerEventType, Action: action, Actor: eventtypes.Actor{
			ID: c.id, Attributes: map[string]string{"name": c.name, "comment": comment},
		}}
	}
}

// makeVolume makes a volume, unless there is one of that name.
func (f *fakeDocker) makeVolume(options volume.CreateOptions) *fakeVolume {
	v := f.findVolume(options.Name)
	if v == nil {
		v = &fakeVolume{name: options.Name, options: options.DriverOpts, labels: options.Labels}
		f.volumes = append(f.volumes, v)
	}
	return v
}

func (f *fakeDocker) VolumeRemove(ctx context.Context, name string, _ bool) error {
	return f.do(ctx, "VolumeRemove "+name, func() error {
		if slices.ContainsFunc(f.containers, func(c *fakeContainer) bool { return c.mountsOneOf([]string{name}) }) {
			return fmt.Errorf("remove %s: volume is in use: %w", name, cerrdefs.ErrConflict)
		}
		f.volumes = slices.DeleteFunc(f.volumes, func(v *fakeVolume) bool { return v.name == name })
		return nil
	})
}

// VolumeCreate hands out the volume of that name, if there is one.
func (f *fakeDocker) VolumeCreate(ctx context.Context, options volume.CreateOptions) (made volume.Volume, err error) {
	err = f.do(ctx, "VolumeCreate "+options.Name, func() error {
		v := f.makeVolume(options)
		made = clone(volume.Volume{Name: v.name, Driver: "local", Options: v.options, Labels: v.labels})
		return nil
	})
	return made, err
}
