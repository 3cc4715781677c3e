package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-connections/nat"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// fakeContainer is a container of a [fakeDocker].
type fakeContainer struct {
	id, name    string
	state       string // created, running, paused, exited …
	image       string // ID
	config      *container.Config
	host        *container.HostConfig
	endpoints   map[string]*network.EndpointSettings
	mounts      []container.MountPoint
	files       string
	log         string
	exitCode    int // of its command, once it has ended
	created     time.Time
	started     time.Time // as far as it is a worker
	finished    time.Time
	startFailed bool
	commits     []bool // one each: whether it was to be frozen
}

var legalName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

func (f *fakeDocker) findContainer(word string) *fakeContainer {
	at := slices.IndexFunc(f.containers, func(c *fakeContainer) bool { return c.id == word || c.name == strings.TrimPrefix(word, "/") })
	if at < 0 && len(word) >= 4 {
		at = slices.IndexFunc(f.containers, func(c *fakeContainer) bool { return strings.HasPrefix(c.id, word) })
	}
	if at < 0 {
		return nil
	}
	return f.containers[at]
}

// withContainer runs effect with the container that word names.
func (f *fakeDocker) withContainer(ctx context.Context, call, word string, effect func(*fakeContainer) error) error {
	return f.do(ctx, call+" "+word, func() error {
		c := f.findContainer(word)
		if c == nil {
			return fmt.Errorf("no such container: %s: %w", word, cerrdefs.ErrNotFound)
		}
		return effect(c)
	})
}

func (f *fakeDocker) ContainerInspectWithRaw(ctx context.Context, id string, size bool) (found container.InspectResponse, raw []byte, err error) {
	err = f.withContainer(ctx, "ContainerInspect", id, func(c *fakeContainer) error {
		answer := c.inspect(size)
		raw, err = json.Marshal(answer)
		if err != nil {
			return err
		}
		raw, err = addFields(raw, f.futureHost)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &found)
	})
	return found, raw, err
}

func (c *fakeContainer) inspect(size bool) container.InspectResponse {
	answer := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: c.id, Name: "/" + c.name, Created: c.created.Format(time.RFC3339Nano), Image: c.image, Platform: "linux", HostConfig: c.host,
			State: &container.State{
				StartedAt:  c.started.Format(time.RFC3339Nano),
				ExitCode:   c.exitCode,
				FinishedAt: c.finished.Format(time.RFC3339Nano),
				Status:     c.state, Running: c.state == "running" || c.state == "paused", Paused: c.state == "paused", Dead: c.state == "dead",
			},
		},
		Config: c.config, Mounts: c.mounts, NetworkSettings: &container.NetworkSettings{Networks: c.endpoints},
	}
	answer.NetworkSettings.Ports = c.published()
	if size {
		bytes := int64(len(c.files))
		answer.SizeRw = &bytes
	}
	return answer
}

// published are the ports of a container that runs: those that are left to the
// engine begin at 32768.
func (c *fakeContainer) published() nat.PortMap {
	ports := nat.PortMap{}
	next := 32768
	for _, port := range slices.Sorted(maps.Keys(c.host.PortBindings)) {
		for _, b := range c.host.PortBindings[port] {
			if b.HostPort == "" {
				b.HostPort = strconv.Itoa(next)
				next++
			}
			ports[port] = append(ports[port], b)
		}
	}
	if c.state != "running" {
		return nil
	}
	return ports
}

// addFields adds to the HostConfig of an inspect answer what a later engine
// would report.
func addFields(raw []byte, host map[string]any) ([]byte, error) {
	if len(host) == 0 {
		return raw, nil
	}
	var answer map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	maps.Copy(answer["HostConfig"].(map[string]any), host)
	return json.Marshal(answer)
}

func (f *fakeDocker) ContainerList(ctx context.Context, options container.ListOptions) (list []container.Summary, err error) {
	err = f.do(ctx, "ContainerList", func() error {
		for _, c := range f.containers {
			if !options.All && c.state != "running" && c.state != "paused" {
				continue
			}
			if ancestors := options.Filters.Get("ancestor"); len(ancestors) > 0 && !f.descends(c.image, ancestors[0]) {
				continue
			}
			if !options.Filters.MatchKVList("label", c.config.Labels) || !options.Filters.ExactMatch("status", c.state) {
				continue
			}
			if names := options.Filters.Get("name"); len(names) > 0 && !strings.Contains("/"+c.name, names[0]) {
				continue
			}
			if names := options.Filters.Get("volume"); len(names) > 0 && !c.mountsOneOf(names) {
				continue
			}
			list = append(list, clone(c.summary()))
		}
		slices.Reverse(list) // the newest first, as engines do
		return nil
	})
	return list, err
}

func (c *fakeContainer) summary() container.Summary {
	s := container.Summary{
		ID: c.id, Names: []string{"/" + c.name}, Image: c.config.Image, ImageID: c.image, State: c.state, Labels: c.config.Labels, Mounts: c.mounts,
		Command: strings.Join(slices.Concat(c.config.Entrypoint, c.config.Cmd), " "), Created: c.created.Unix(),
		NetworkSettings: &container.NetworkSettingsSummary{Networks: c.endpoints},
	}
	if c.state == "running" || c.state == "paused" {
		for _, held := range c.ports() {
			s.Ports = append(s.Ports, container.Port{IP: held.IP.String(), PublicPort: held.Port, Type: held.Proto})
		}
	}
	return s
}

func (c *fakeContainer) mountsOneOf(volumes []string) bool {
	return slices.ContainsFunc(c.mounts, func(m container.MountPoint) bool {
		return slices.Contains(volumes, cmp.Or(m.Name, m.Source))
	})
}

func (f *fakeDocker) ContainerCommit(ctx context.Context, id string, options container.CommitOptions) (made container.CommitResponse, err error) {
	err = f.withContainer(ctx, "ContainerCommit", id, func(c *fakeContainer) error {
		parent := f.findImage(c.image)
		if parent == nil {
			return fmt.Errorf("no such image: %s: %w", c.image, cerrdefs.ErrNotFound)
		}
		if len(parent.layers) >= 125 {
			return fmt.Errorf("max depth exceeded: %w", cerrdefs.ErrInternal)
		}
		config := clone(options.Config)
		if config == nil {
			config = &container.Config{}
		}
		mergeConfig(config, clone(c.config))
		img := &fakeImage{
			id: "sha256:" + f.newID(), parent: parent.id, config: config, comment: options.Comment,
			layers: append(slices.Clone(parent.layers), f.newID()), files: c.files, created: f.clock, arch: parent.arch,
		}
		c.commits = append(c.commits, options.Pause)
		pauses := options.Pause && c.state == "running"
		if pauses {
			f.setPaused(c, true)
		}
		if f.inCommit != nil {
			first := f.inCommit
			f.inCommit = nil
			first()
		}
		f.tell(eventtypes.ActionCommit, c, options.Comment)
		if pauses && c.state == "paused" {
			f.setPaused(c, false)
		}
		if options.Reference != "" {
			f.untag(options.Reference)
			img.tags = []string{options.Reference}
		}
		f.images = append(f.images, img)
		made.ID = img.id
		return nil
	})
	return made, err
}

func (f *fakeDocker) ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, networking *network.NetworkingConfig, _ *ocispec.Platform, name string) (made container.CreateResponse, err error) {
	err = f.do(ctx, "ContainerCreate "+name, func() error {
		c, err := f.newContainer(clone(config), clone(host), clone(networking), name)
		if err != nil {
			return err
		}
		f.containers = append(f.containers, c)
		made.ID = c.id
		return nil
	})
	return made, err
}

// newContainer checks in the order in which engines do: the mounts' sources
// before the image, the image before the name.
func (f *fakeDocker) newContainer(config *container.Config, host *container.HostConfig, networking *network.NetworkingConfig, name string) (*fakeContainer, error) {
	if name != "" && !legalName.MatchString(name) {
		return nil, fmt.Errorf("invalid container name (%s): %w", name, cerrdefs.ErrInvalidArgument)
	}
	for _, m := range host.Mounts {
		missing := m.Type == mount.TypeBind && !f.hostPaths[m.Source]
		if missing && (m.BindOptions == nil || !m.BindOptions.CreateMountpoint) {
			return nil, fmt.Errorf("invalid mount config for type \"bind\": bind source path does not exist: %s: %w", m.Source, cerrdefs.ErrInvalidArgument)
		}
	}
	if networking != nil && len(networking.EndpointsConfig) > 1 && f.apiVersion < runconfig.AllEndpointsVersion {
		return nil, fmt.Errorf("container cannot be created with several network endpoints: %w", cerrdefs.ErrInvalidArgument)
	}
	img := f.findImage(config.Image)
	if img == nil {
		return nil, fmt.Errorf("no such image: %s: %w", config.Image, cerrdefs.ErrNotFound)
	}
	mergeConfig(config, clone(img.config))
	if slices.Equal(config.Entrypoint, []string{""}) {
		config.Entrypoint = nil
	}
	if len(config.Entrypoint)+len(config.Cmd) == 0 {
		return nil, fmt.Errorf("no command specified: %w", cerrdefs.ErrInvalidArgument)
	}
	c := &fakeContainer{id: f.newID(), name: name, state: "created", image: img.id, config: config, host: host, files: img.files, created: f.clock}
	if name == "" {
		c.name = "generated_" + c.id[:6]
	}
	if other := f.findContainer(c.name); other != nil && other.name == c.name {
		return nil, fmt.Errorf("conflict: the container name %q is already in use by container %q: %w", "/"+name, other.id, cerrdefs.ErrConflict)
	}
	if config.Hostname == "" {
		config.Hostname = c.id[:12]
	}
	if host.NetworkMode == "" || host.NetworkMode == "default" {
		host.NetworkMode = "bridge"
	}
	f.attach(c, networking)
	f.mountVolumes(c)
	return c, nil
}

// ContainerLogs returns what a container wrote to its error output, in the engine's frames.
func (f *fakeDocker) ContainerLogs(ctx context.Context, id string, options container.LogsOptions) (logs io.ReadCloser, err error) {
	err = f.withContainer(ctx, "ContainerLogs", id, func(c *fakeContainer) error {
		last := strings.SplitAfter(c.log, "\n")
		if n, err := strconv.Atoi(options.Tail); err == nil {
			last = last[max(0, len(last)-1-n):]
		}
		var framed bytes.Buffer
		if _, err := io.WriteString(stdcopy.NewStdWriter(&framed, stdcopy.Stderr), strings.Join(last, "")); err != nil {
			return err
		}
		logs = io.NopCloser(&framed)
		return nil
	})
	return logs, err
}

func (f *fakeDocker) ContainerExport(ctx context.Context, id string) (files io.ReadCloser, err error) {
	err = f.withContainer(ctx, "ContainerExport", id, func(c *fakeContainer) error {
		files = io.NopCloser(strings.NewReader(c.files))
		return nil
	})
	return files, err
}
