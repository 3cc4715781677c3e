package enginetest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

// FakeVolume is a volume of a [Docker].
type FakeVolume struct {
	Name     string
	options  map[string]string
	Labels   map[string]string
	MadeWith string // if it is anonymous: the ID of the container that it was made with
	Created  time.Time
	Content  string // a text that stands for its files
}

// attach connects a new container to its networks.
func (f *Docker) attach(c *FakeContainer, networking *network.NetworkingConfig) {
	c.Endpoints = map[string]*network.EndpointSettings{}
	if networking != nil {
		for name, e := range networking.EndpointsConfig {
			c.Endpoints[name] = f.Endpoint(name, e)
		}
	}
	mode := c.Host.NetworkMode
	if len(c.Endpoints) == 0 && !mode.IsContainer() {
		c.Endpoints[mode.NetworkName()] = f.Endpoint(mode.NetworkName(), nil)
	}
}

// Endpoint returns the endpoint of a container in a network. The network's name decides, unless
// asked has an ID.
func (f *Docker) Endpoint(name string, asked *network.EndpointSettings) *network.EndpointSettings {
	if asked == nil {
		asked = &network.EndpointSettings{}
	}
	made := Clone(asked)
	if made.NetworkID == "" {
		made.NetworkID = f.Networks[name]
	}
	return made
}

// mountVolumes makes the volumes that a new container mounts and that do not exist.
func (f *Docker) mountVolumes(c *FakeContainer) {
	add := func(name, destination string, rw, anonymous bool) {
		made := &FakeVolume{Name: name}
		if anonymous {
			name = f.NewID()
			made.Name, made.MadeWith = name, c.ID
		}
		if f.FindVolume(name) == nil {
			f.Volumes = append(f.Volumes, made)
		}
		c.Mounts = append(c.Mounts, container.MountPoint{
			Type: mount.TypeVolume, Name: name, Source: "/volumes/" + name, Destination: destination, Driver: "local", RW: rw,
		})
	}
	covered := map[string]bool{}
	for _, text := range c.Host.Binds {
		source, destination, options := cutBind(text)
		rw := !slices.Contains(strings.Split(options, ","), "ro")
		covered[destination] = true
		if strings.HasPrefix(source, "/") {
			c.Mounts = append(c.Mounts, container.MountPoint{Type: mount.TypeBind, Source: source, Destination: destination, RW: rw})
			continue
		}
		add(source, destination, rw, source == "")
	}
	for _, m := range c.Host.Mounts {
		target := path.Clean(m.Target)
		covered[target] = true
		if m.Type == mount.TypeVolume {
			add(m.Source, target, !m.ReadOnly, m.Source == "")
		} else {
			c.Mounts = append(c.Mounts, container.MountPoint{Type: m.Type, Source: m.Source, Destination: target, RW: !m.ReadOnly})
		}
	}
	for _, destination := range slices.Sorted(maps.Keys(c.Config.Volumes)) {
		if destination = path.Clean(destination); !covered[destination] {
			covered[destination] = true
			add("", destination, true, true)
		}
	}
}

// cutBind reads an entry of HostConfig.Binds. As an engine does, it cleans the destination. An anonymous volume has no source.
func cutBind(text string) (source, destination, options string) {
	source, rest, named := strings.Cut(text, ":")
	if !named {
		return "", path.Clean(text), ""
	}
	destination, options, _ = strings.Cut(rest, ":")
	return source, path.Clean(destination), options
}

// checkDuplicates refuses two mounts in the same place, as an engine does.
func checkDuplicates(host *container.HostConfig) error {
	known := map[string]bool{}
	for target := range host.Tmpfs {
		known[path.Clean(target)] = true
	}
	targets := make([]string, 0, len(host.Binds)+len(host.Mounts))
	for _, text := range host.Binds {
		_, destination, _ := cutBind(text)
		targets = append(targets, destination)
	}
	for _, m := range host.Mounts {
		targets = append(targets, path.Clean(m.Target))
	}
	for _, target := range targets {
		if known[target] {
			return fmt.Errorf("Duplicate mount point: %s: %w", target, cerrdefs.ErrInvalidArgument) //nolint:staticcheck // the engine's words
		}
		known[target] = true
	}
	return nil
}

// contentOf returns what a volume, or a directory of the host, holds. key is as [labels.Mount.Key] has it.
func (f *Docker) contentOf(key string) string {
	if labels.IsPathKey(key) {
		return f.Directories[key]
	}
	return f.FindVolume(key).Content
}

// setContent changes that.
func (f *Docker) setContent(key, content string) {
	if labels.IsPathKey(key) {
		f.Directories[key] = content
		return
	}
	f.FindVolume(key).Content = content
}

// areThere fails as an engine does if one of the directories that are to be mounted is not there.
func (f *Docker) areThere(keys []string) error {
	for _, key := range keys {
		if labels.IsPathKey(key) && !f.HostPaths[key] {
			return fmt.Errorf("invalid mount config for type \"bind\": bind source path does not exist: %s: %w", key, cerrdefs.ErrInvalidArgument)
		}
	}
	return nil
}

// FindVolume returns the volume of that name, or nil.
func (f *Docker) FindVolume(name string) *FakeVolume {
	at := slices.IndexFunc(f.Volumes, func(v *FakeVolume) bool { return v.Name == name })
	if at < 0 {
		return nil
	}
	return f.Volumes[at]
}

// ports returns the ports of the host that the container holds while it runs.
func (c *FakeContainer) ports() []runconfig.HostPort {
	var ports []runconfig.HostPort
	for port, bindings := range c.Host.PortBindings {
		for _, b := range bindings {
			number, err := strconv.ParseUint(b.HostPort, 10, 16)
			if err != nil {
				continue // the engine chooses a free port
			}
			ip, err := netip.ParseAddr(b.HostIP)
			if err != nil {
				ip = netip.IPv4Unspecified()
			}
			ports = append(ports, runconfig.HostPort{IP: ip, Port: uint16(number), Proto: port.Proto()})
		}
	}
	return ports
}

// ClientVersion returns the API version.
func (f *Docker) ClientVersion() string { return f.APIVersion }

// InfoNow returns what the engine says of itself now.
func (f *Docker) InfoNow(t *testing.T) dockerop.Info {
	t.Helper()
	info, err := dockerop.New(f, nil).Identify(t.Context())
	assert.NilError(t, err)
	f.Calls = f.Calls[:len(f.Calls)-1]
	return info
}

// Info returns About, with the time on the engine's clock.
func (f *Docker) Info(ctx context.Context) (info system.Info, err error) {
	err = f.do(ctx, "Info", func() error {
		info = Clone(f.About)
		info.SystemTime = f.Clock.Format(time.RFC3339Nano)
		return nil
	})
	return info, err
}

// NetworkList returns all networks.
func (f *Docker) NetworkList(ctx context.Context, _ network.ListOptions) (list []network.Summary, err error) {
	err = f.do(ctx, "NetworkList", func() error {
		for _, name := range slices.Sorted(maps.Keys(f.Networks)) {
			list = append(list, network.Summary{Name: name, ID: f.Networks[name], Driver: "bridge"})
		}
		return nil
	})
	return list, err
}

// NetworkConnect connects a container to a network.
func (f *Docker) NetworkConnect(ctx context.Context, name, id string, config *network.EndpointSettings) error {
	return f.withContainer(ctx, "NetworkConnect "+name, id, func(c *FakeContainer) error {
		if f.Networks[name] == "" {
			return fmt.Errorf("network %s not found: %w", name, cerrdefs.ErrNotFound)
		}
		c.Endpoints[name] = f.Endpoint(name, config)
		return nil
	})
}

// NetworkDisconnect disconnects a container from a network.
func (f *Docker) NetworkDisconnect(ctx context.Context, name, id string, _ bool) error {
	return f.withContainer(ctx, "NetworkDisconnect "+name, id, func(c *FakeContainer) error {
		if c.Endpoints[name] == nil {
			return fmt.Errorf("container %s is not connected to network %s: %w", id, name, cerrdefs.ErrNotFound)
		}
		delete(c.Endpoints, name)
		return nil
	})
}

// NetworkCreate makes a network.
func (f *Docker) NetworkCreate(ctx context.Context, name string, _ network.CreateOptions) (made network.CreateResponse, err error) {
	err = f.do(ctx, "NetworkCreate "+name, func() error {
		made.ID = f.NewID()
		f.Networks[name] = made.ID
		return nil
	})
	return made, err
}

// NetworkRemove removes a network.
func (f *Docker) NetworkRemove(ctx context.Context, name string) error {
	return f.do(ctx, "NetworkRemove "+name, func() error {
		delete(f.Networks, name)
		return nil
	})
}

// VolumeInspect returns the volume of that name.
func (f *Docker) VolumeInspect(ctx context.Context, name string) (found volume.Volume, err error) {
	err = f.do(ctx, "VolumeInspect "+name, func() error {
		v := f.FindVolume(name)
		if v == nil {
			return fmt.Errorf("get %s: no such volume: %w", name, cerrdefs.ErrNotFound)
		}
		found = Clone(volume.Volume{Name: v.Name, Driver: "local", Options: v.options, Labels: v.Labels})
		return nil
	})
	return found, err
}

// VolumeList filters by label and name. All volumes are of the local driver.
func (f *Docker) VolumeList(ctx context.Context, o volume.ListOptions) (list volume.ListResponse, err error) {
	err = f.do(ctx, "VolumeList", func() error {
		for _, v := range f.Volumes {
			if !o.Filters.MatchKVList("label", v.Labels) || !o.Filters.Match("name", v.Name) {
				continue
			}
			made := Clone(volume.Volume{Name: v.Name, Driver: "local", Options: v.options, Labels: v.Labels, Mountpoint: "/volumes/" + v.Name, CreatedAt: v.Created.Format(time.RFC3339)})
			list.Volumes = append(list.Volumes, &made)
		}
		return nil
	})
	return list, err
}

// Events sends what happens from now on, whatever the filters.
func (f *Docker) Events(ctx context.Context, _ eventtypes.ListOptions) (<-chan eventtypes.Message, <-chan error) {
	const buffered = 1000
	messages, failed := make(chan eventtypes.Message, buffered), make(chan error, 1)
	err := f.do(ctx, "Events", func() error {
		f.listeners = append(f.listeners, messages)
		f.streams = append(f.streams, failed)
		return nil
	})
	if err != nil {
		failed <- err
	}
	return messages, failed
}

// BreakEvents breaks the connections of all who listen.
func (f *Docker) BreakEvents() {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, stream := range f.streams {
		stream <- io.ErrUnexpectedEOF
	}
	f.streams = nil
}

// Happens sends an event of a container, as oom and health_status: those that no call causes.
func (f *Docker) Happens(action eventtypes.Action, name string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.tell(action, f.FindContainer(name), "")
}

// tell sends an event to everybody who listens.
func (f *Docker) tell(action eventtypes.Action, c *FakeContainer, comment string) {
	f.send(eventtypes.Message{Type: eventtypes.ContainerEventType, Action: action, Actor: eventtypes.Actor{
		ID: c.ID, Attributes: map[string]string{"name": c.Name, "comment": comment},
	}})
}

func (f *Docker) send(m eventtypes.Message) {
	f.told = max(f.told+1, f.Clock.UnixNano()) // no two at once, also while the clock stands still
	m.TimeNano = f.told
	for _, listener := range f.listeners {
		listener <- m
	}
}

// Exec runs a command in a container as somebody else does: without a call that counts or can fail. It
// only sends the events.
func (f *Docker) Exec(name, command string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	c, exec := f.FindContainer(name), f.NewID()
	for _, action := range []eventtypes.Action{eventtypes.ActionExecStart + eventtypes.Action(": "+command), eventtypes.ActionExecDie} {
		f.send(eventtypes.Message{Type: eventtypes.ContainerEventType, Action: action, Actor: eventtypes.Actor{
			ID: c.ID, Attributes: map[string]string{"name": c.Name, "execID": exec},
		}})
	}
}

// Connected tells everybody who listens that a container was connected to a network.
func (f *Docker) Connected(name, network string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.send(eventtypes.Message{Type: eventtypes.NetworkEventType, Action: eventtypes.ActionConnect, Actor: eventtypes.Actor{
		Attributes: map[string]string{"name": network, "container": f.FindContainer(name).ID},
	}})
}

// makeVolume makes a volume, unless one of that name exists.
func (f *Docker) makeVolume(options volume.CreateOptions) *FakeVolume {
	v := f.FindVolume(options.Name)
	if v == nil {
		v = &FakeVolume{Name: options.Name, options: options.DriverOpts, Labels: options.Labels, Created: f.Clock}
		f.Volumes = append(f.Volumes, v)
	}
	return v
}

// VolumeRemove refuses to remove a volume that a container mounts.
func (f *Docker) VolumeRemove(ctx context.Context, name string, _ bool) error {
	return f.do(ctx, "VolumeRemove "+name, func() error {
		if slices.ContainsFunc(f.Containers, func(c *FakeContainer) bool { return c.mountsOneOf([]string{name}) }) {
			return fmt.Errorf("remove %s: volume is in use: %w", name, cerrdefs.ErrConflict)
		}
		f.Volumes = slices.DeleteFunc(f.Volumes, func(v *FakeVolume) bool { return v.Name == name })
		return nil
	})
}

// VolumeCreate returns the volume of that name if it exists.
func (f *Docker) VolumeCreate(ctx context.Context, options volume.CreateOptions) (made volume.Volume, err error) {
	err = f.do(ctx, "VolumeCreate "+options.Name, func() error {
		if f.FindVolume(options.Name) == nil {
			f.send(eventtypes.Message{Type: eventtypes.VolumeEventType, Action: eventtypes.ActionCreate, Actor: eventtypes.Actor{ID: options.Name}})
		}
		v := f.makeVolume(options)
		made = Clone(volume.Volume{Name: v.Name, Driver: "local", Options: v.options, Labels: v.Labels})
		return nil
	})
	return made, err
}
