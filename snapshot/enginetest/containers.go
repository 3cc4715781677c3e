package enginetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	eventtypes "github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-connections/nat"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FakeContainer is a container of a [Docker].
type FakeContainer struct {
	ID, Name    string
	State       string // created, running, paused, exited …
	Image       string // ID
	Config      *container.Config
	Host        *container.HostConfig
	Endpoints   map[string]*network.EndpointSettings
	Mounts      []container.MountPoint
	Files       string
	Changes     []container.FilesystemChange
	Log         string
	Health      string // of its healthcheck; empty: it has none
	ExitCode    int    // of its command, once that has ended
	created     time.Time
	started     time.Time
	finished    time.Time
	startFailed bool
	Memory      uint64 // bytes that it uses
	Commits     []bool // for each commit, whether the call asked to pause it
	// Begins says that a command begins in it whenever it is frozen: then the engine is stuck with it, as
	// 20.10 is, until its processes are thawed past the engine.
	Begins bool
	stuck  chan struct{} // closed when they are; nil: it is not stuck
	past   bool          // its processes run, and the engine does not know
}

var legalName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

// FindContainer returns the container with that name, ID or beginning of an ID, or nil.
func (f *Docker) FindContainer(word string) *FakeContainer {
	at := slices.IndexFunc(f.Containers, func(c *FakeContainer) bool { return c.ID == word || c.Name == strings.TrimPrefix(word, "/") })
	if at < 0 && len(word) >= 4 {
		at = slices.IndexFunc(f.Containers, func(c *FakeContainer) bool { return strings.HasPrefix(c.ID, word) })
	}
	if at < 0 {
		return nil
	}
	return f.Containers[at]
}

// withContainer runs effect with the container that word names.
func (f *Docker) withContainer(ctx context.Context, call, word string, effect func(*FakeContainer) error) error {
	return f.do(ctx, call+" "+word, func() error {
		c := f.FindContainer(word)
		if c == nil {
			return fmt.Errorf("no such container: %s: %w", word, cerrdefs.ErrNotFound)
		}
		return effect(c)
	})
}

// ContainerInspectWithRaw also reports the fields of FutureHost.
func (f *Docker) ContainerInspectWithRaw(ctx context.Context, id string, size bool) (found container.InspectResponse, raw []byte, err error) {
	if err := f.awaitUnstuck(ctx, id); err != nil {
		return container.InspectResponse{}, nil, err
	}
	err = f.withContainer(ctx, "ContainerInspect", id, func(c *FakeContainer) error {
		answer := c.Inspect(size)
		raw, err = json.Marshal(answer)
		if err != nil {
			return err
		}
		raw, err = addFields(raw, f.FutureHost)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &found)
	})
	return found, raw, err
}

// Inspect returns what the engine says of the container.
func (c *FakeContainer) Inspect(size bool) container.InspectResponse {
	answer := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: c.ID, Name: "/" + c.Name, Created: c.created.Format(time.RFC3339Nano), Image: c.Image, Platform: "linux", HostConfig: c.Host,
			State: &container.State{
				StartedAt:  c.started.Format(time.RFC3339Nano),
				ExitCode:   c.ExitCode,
				FinishedAt: c.finished.Format(time.RFC3339Nano),
				Status:     c.State, Running: c.State == "running" || c.State == "paused", Paused: c.State == "paused", Dead: c.State == "dead",
			},
		},
		Config: c.Config, Mounts: c.Mounts, NetworkSettings: &container.NetworkSettings{Networks: c.Endpoints},
	}
	answer.NetworkSettings.Ports = c.published()
	if c.Health != "" {
		answer.State.Health = &container.Health{Status: c.Health}
		if c.Health == container.Unhealthy {
			answer.State.Health.FailingStreak = 1
		}
	}
	if size {
		bytes := int64(len(c.Files))
		answer.SizeRw = &bytes
	}
	return answer
}

// published returns the published ports of a running container. Those that the engine chooses begin
// at 32768.
func (c *FakeContainer) published() nat.PortMap {
	ports := nat.PortMap{}
	next := 32768
	for _, port := range slices.Sorted(maps.Keys(c.Host.PortBindings)) {
		for _, b := range c.Host.PortBindings[port] {
			if b.HostPort == "" {
				b.HostPort = strconv.Itoa(next)
				next++
			}
			ports[port] = append(ports[port], b)
		}
	}
	if c.State != "running" {
		return nil
	}
	return ports
}

// addFields adds fields to the HostConfig of an inspect answer.
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

// ContainerList filters by ancestor, label, status, name and volume.
func (f *Docker) ContainerList(ctx context.Context, options container.ListOptions) (list []container.Summary, err error) {
	err = f.do(ctx, "ContainerList", func() error {
		for _, c := range f.Containers {
			if f.isListed(c, options) {
				list = append(list, Clone(c.summary()))
			}
		}
		slices.Reverse(list) // engines list the newest first
		return nil
	})
	return list, err
}

func (f *Docker) isListed(c *FakeContainer, options container.ListOptions) bool {
	ancestors, names, volumes := options.Filters.Get("ancestor"), options.Filters.Get("name"), options.Filters.Get("volume")
	switch {
	case !options.All && c.State != "running" && c.State != "paused",
		len(ancestors) > 0 && !f.descends(c.Image, ancestors[0]),
		len(names) > 0 && !strings.Contains("/"+c.Name, names[0]),
		len(volumes) > 0 && !c.mountsOneOf(volumes):
		return false
	}
	return options.Filters.MatchKVList("label", c.Config.Labels) && options.Filters.ExactMatch("status", c.State)
}

func (c *FakeContainer) summary() container.Summary {
	s := container.Summary{
		ID: c.ID, Names: []string{"/" + c.Name}, Image: c.Config.Image, ImageID: c.Image, State: c.State, Labels: c.Config.Labels, Mounts: c.Mounts,
		Command: strings.Join(slices.Concat(c.Config.Entrypoint, c.Config.Cmd), " "), Created: c.created.Unix(),
		NetworkSettings: &container.NetworkSettingsSummary{Networks: c.Endpoints},
	}
	if c.State == "running" || c.State == "paused" {
		for _, held := range c.ports() {
			s.Ports = append(s.Ports, container.Port{IP: held.IP.String(), PublicPort: held.Port, Type: held.Proto})
		}
	}
	return s
}

func (c *FakeContainer) mountsOneOf(volumes []string) bool {
	return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool {
		return slices.Contains(volumes, cmp.Or(m.Name, m.Source))
	})
}

// ContainerStatsOneShot answers with the use of memory that the test has set, of a limit of 1000.
func (f *Docker) ContainerStatsOneShot(ctx context.Context, id string) (answer container.StatsResponseReader, err error) {
	err = f.withContainer(ctx, "ContainerStats", id, func(c *FakeContainer) error {
		stats := container.StatsResponse{MemoryStats: container.MemoryStats{
			Usage: c.Memory + 100, Limit: 1000, Stats: map[string]uint64{"inactive_file": 100},
		}}
		raw, err := json.Marshal(stats)
		answer.Body = io.NopCloser(bytes.NewReader(raw))
		return err
	})
	return answer, err
}

// invalidWhiteouts are names that engine 29 cannot commit.
var invalidWhiteouts = []string{".wh.", ".wh..", ".wh..."}

func (c *FakeContainer) checkWhiteouts() error {
	for _, change := range c.Changes {
		if name := path.Base(change.Path); slices.Contains(invalidWhiteouts, name) {
			return fmt.Errorf("failed to apply diff: invalid whiteout name: %s: invalid archive: %w", name, cerrdefs.ErrInternal)
		}
	}
	return nil
}

// ContainerCommit fails for an image with 125 layers, as overlay2 does, and for some names, as engine 29 does.
func (f *Docker) ContainerCommit(ctx context.Context, id string, options container.CommitOptions) (made container.CommitResponse, err error) {
	if err := f.awaitUnstuck(ctx, id); err != nil {
		return made, err
	}
	thaws := false
	err = f.withContainer(ctx, "ContainerCommit", id, func(c *FakeContainer) error {
		img, err := f.imageOf(c, options)
		if err != nil {
			return err
		}
		c.Commits = append(c.Commits, options.Pause)
		pauses := options.Pause && c.State == "running"
		thaws = pauses
		if pauses {
			f.SetPaused(c, true)
		}
		if f.BusyCommits > 0 {
			f.BusyCommits--
			if pauses {
				f.SetPaused(c, false)
			}
			return fmt.Errorf("failed to export layer: snapshot %q: already exists: %w", parentView, cerrdefs.ErrInternal)
		}
		if f.InCommit != nil {
			first := f.InCommit
			f.InCommit = nil
			first()
		}
		f.tell(eventtypes.ActionCommit, c, options.Comment)
		if pauses && c.State == "paused" && c.stuck == nil {
			f.SetPaused(c, false)
		}
		if options.Reference != "" {
			f.untag(options.Reference)
			img.Tags = []string{options.Reference}
		}
		f.Images = append(f.Images, img)
		made.ID = img.ID
		return nil
	})
	if err == nil && thaws { // whether that fails is not told
		err = f.awaitUnstuck(ctx, id)
	}
	return made, err
}

// parentView is what an engine with the containerd image store makes of an image while it commits a container of it.
const parentView = "sha256:8b811a30cb94c227fb2ae61a2a1ec1e93381dbef06f9ea6b5c06df4f27651fed-parent-view"

// imageOf is what a commit of a container makes.
func (f *Docker) imageOf(c *FakeContainer, options container.CommitOptions) (*FakeImage, error) {
	parent := f.FindImage(c.Image)
	if parent == nil {
		return nil, fmt.Errorf("no such image: %s: %w", c.Image, cerrdefs.ErrNotFound)
	}
	if len(parent.Layers) >= 125 {
		return nil, fmt.Errorf("max depth exceeded: %w", cerrdefs.ErrInternal)
	}
	if err := c.checkWhiteouts(); err != nil {
		return nil, err
	}
	config := Clone(options.Config)
	if config == nil {
		config = &container.Config{}
	}
	mergeConfig(config, Clone(c.Config))
	img := &FakeImage{
		ID: "sha256:" + f.NewID(), Parent: parent.ID, Config: config, Comment: options.Comment,
		Layers: slices.Clone(parent.Layers), Files: c.Files, created: f.Clock, Arch: parent.Arch,
	}
	if c.State != "created" { // nothing was written
		img.Layers = append(img.Layers, f.NewID())
	}
	return img, nil
}

// ContainerCreate makes a container, and the volumes that it mounts and that do not exist.
func (f *Docker) ContainerCreate(ctx context.Context, config *container.Config, host *container.HostConfig, networking *network.NetworkingConfig, _ *ocispec.Platform, name string) (made container.CreateResponse, err error) {
	err = f.do(ctx, "ContainerCreate "+name, func() error {
		if f.CreateError != nil {
			return f.CreateError
		}
		c, err := f.newContainer(Clone(config), Clone(host), Clone(networking), name)
		if err != nil {
			return err
		}
		f.Containers = append(f.Containers, c)
		made.ID = c.ID
		return nil
	})
	return made, err
}

// newContainer checks in the order in which engines do: the sources of the mounts, then the image,
// then the name.
func (f *Docker) newContainer(config *container.Config, host *container.HostConfig, networking *network.NetworkingConfig, name string) (*FakeContainer, error) {
	if name != "" && !legalName.MatchString(name) {
		return nil, fmt.Errorf("invalid container name (%s): %w", name, cerrdefs.ErrInvalidArgument)
	}
	if err := f.checkMounts(host.Mounts); err != nil {
		return nil, err
	}
	if networking != nil && len(networking.EndpointsConfig) > 1 && f.APIVersion < "1.44" {
		return nil, fmt.Errorf("container cannot be created with several network endpoints: %w", cerrdefs.ErrInvalidArgument)
	}
	img := f.FindImage(config.Image)
	if img == nil {
		return nil, fmt.Errorf("no such image: %s: %w", config.Image, cerrdefs.ErrNotFound)
	}
	mergeConfig(config, Clone(img.Config))
	if slices.Equal(config.Entrypoint, []string{""}) {
		config.Entrypoint = nil
	}
	if len(config.Entrypoint)+len(config.Cmd) == 0 {
		return nil, fmt.Errorf("no command specified: %w", cerrdefs.ErrInvalidArgument)
	}
	c := &FakeContainer{ID: f.NewID(), Name: name, State: "created", Image: img.ID, Config: config, Host: host, Files: img.Files, created: f.Clock}
	if name == "" {
		c.Name = "generated_" + c.ID[:6]
	}
	if other := f.FindContainer(c.Name); other != nil && other.Name == c.Name {
		return nil, fmt.Errorf("conflict: the container name %q is already in use by container %q: %w", "/"+name, other.ID, cerrdefs.ErrConflict)
	}
	if config.Hostname == "" {
		config.Hostname = c.ID[:12]
	}
	if host.NetworkMode == "" || host.NetworkMode == "default" {
		host.NetworkMode = "bridge"
	}
	if err := checkDuplicates(host); err != nil {
		return nil, err
	}
	f.attach(c, networking)
	f.mountVolumes(c)
	return c, nil
}

// checkMounts refuses what an engine does: a relative path, and a bind whose source is not there.
func (f *Docker) checkMounts(mounts []mount.Mount) error {
	for _, m := range mounts {
		if !path.IsAbs(m.Target) {
			return fmt.Errorf("invalid mount path: '%s' mount path must be absolute: %w", m.Target, cerrdefs.ErrInvalidArgument)
		}
		missing := m.Type == mount.TypeBind && !f.HostPaths[m.Source]
		if missing && (m.BindOptions == nil || !m.BindOptions.CreateMountpoint) {
			return fmt.Errorf("invalid mount config for type \"bind\": bind source path does not exist: %s: %w", m.Source, cerrdefs.ErrInvalidArgument)
		}
	}
	return nil
}

// ContainerLogs returns what a container wrote to its standard error, in the frames of the API.
func (f *Docker) ContainerLogs(ctx context.Context, id string, options container.LogsOptions) (logs io.ReadCloser, err error) {
	err = f.withContainer(ctx, "ContainerLogs", id, func(c *FakeContainer) error {
		last := strings.SplitAfter(c.Log, "\n")
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

// ContainerDiff returns the container's changed files.
func (f *Docker) ContainerDiff(ctx context.Context, id string) (changes []container.FilesystemChange, err error) {
	err = f.withContainer(ctx, "ContainerDiff", id, func(c *FakeContainer) error {
		if c.State == "dead" {
			return fmt.Errorf("RWLayer of container %s is unexpectedly nil: %w", c.ID, cerrdefs.ErrInternal)
		}
		changes = c.Changes
		return nil
	})
	return changes, err
}

// ContainerExport returns the container's files.
func (f *Docker) ContainerExport(ctx context.Context, id string) (files io.ReadCloser, err error) {
	err = f.withContainer(ctx, "ContainerExport", id, func(c *FakeContainer) error {
		files = io.NopCloser(strings.NewReader(c.Files))
		return nil
	})
	return files, err
}
