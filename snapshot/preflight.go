package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"golang.org/x/sync/errgroup"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
)

// surroundings is what was observed of the engine before a restore.
type surroundings struct {
	info       system.Info
	networks   []network.Summary
	containers []container.Summary // stopped ones too
	storage    storage.Map         // of the engine's volumes
	noVolume   map[string]bool     // named volumes that are gone
	noPath     map[string]bool     // paths of the host that are not there
	key        []byte              // of the engine; nil: it has none
	inherited  map[string]string   // the labels of the snapshot's image
}

// look observes everything that a restore of a snapshot as sp depends on, side by
// side: volumes are those that have to be there. It makes nothing.
func (e *Engine) look(ctx context.Context, s catalog.Snapshot, sp *spec, volumes []string) (surroundings, error) {
	var found surroundings
	calls, ctx := errgroup.WithContext(ctx)
	calls.Go(func() (err error) {
		found.key, err = e.catalog.KnownKey(ctx)
		return err
	})
	calls.Go(func() (err error) {
		found.inherited, err = e.imageLabels(ctx, s)
		return err
	})
	calls.Go(func() (err error) {
		found.info, err = e.docker.Info(ctx)
		return dockerop.Describe(err, "ask the engine who it is")
	})
	calls.Go(func() (err error) {
		found.networks, err = e.docker.NetworkList(ctx, network.ListOptions{})
		return dockerop.Describe(err, "list networks")
	})
	calls.Go(func() (err error) {
		all, err := e.docker.ContainerList(ctx, container.ListOptions{All: true})
		if err != nil {
			return fmt.Errorf("list containers: %w", err)
		}
		found.containers, err = e.pending.WithoutWorkers(ctx, all)
		return err
	})
	calls.Go(func() (err error) {
		found.storage, err = storage.Observe(ctx, e.docker)
		return err
	})
	calls.Go(func() (err error) {
		found.noVolume, err = dockerop.Absent(ctx, volumes, func(ctx context.Context, name string) error {
			_, err := e.docker.VolumeInspect(ctx, name)
			return err
		})
		return dockerop.Describe(err, "inspect volumes")
	})
	calls.Go(func() (err error) {
		found.noPath, err = dockerop.Absent(ctx, sp.requiredPaths(), e.docker.CheckHostPath)
		return dockerop.Describe(err, "look for host paths")
	})
	return found, calls.Wait()
}

// imageLabels are those that a container made from the snapshot inherits.
func (e *Engine) imageLabels(ctx context.Context, s catalog.Snapshot) (map[string]string, error) {
	found, err := e.docker.ImageInspect(ctx, s.ImageID)
	if err != nil || found.Config == nil {
		return nil, dockerop.Describe(err, "inspect image of snapshot "+string(s.ID))
	}
	return found.Config.Labels, nil
}

// requiredPaths are the host's paths that must exist: a missing source of a
// bind would silently become an empty directory.
func (sp *spec) requiredPaths() []string {
	var paths []string
	for _, b := range sp.binds() {
		if !b.createsSource {
			paths = append(paths, b.source)
		}
	}
	for _, d := range sp.host.Devices {
		paths = append(paths, d.PathOnHost)
	}
	paths = append(paths, sp.limitedDevices()...)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// namedVolumes are the volumes that the configuration mounts by name, and that
// are not to be made first.
func (sp *spec) namedVolumes(made []newVolume) []string {
	var names []string
	for _, text := range sp.host.Binds {
		if b, ok := parseBind(text); ok && !b.isPath() {
			names = append(names, b.source)
		}
	}
	for _, m := range sp.host.Mounts {
		if m.Type == mount.TypeVolume && m.Source != "" {
			names = append(names, m.Source)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(made, func(v newVolume) bool { return v.create.Name == name })
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// problems lists everything that stands against making a container of sp.
func (s surroundings) problems(sp *spec, name string) []plan.Problem {
	var found []plan.Problem
	add := func(kind plan.ProblemKind, subject, format string) {
		found = append(found, plan.Problem{Kind: kind, Subject: subject, Text: fmt.Sprintf(format, subject)})
	}
	if s.container(name) != nil {
		add(plan.ProblemNameTaken, name, "a container named %s exists already")
	}
	for _, name := range slices.Sorted(maps.Keys(sp.endpoints)) {
		if s.network(name) == nil {
			add(plan.ProblemNoNetwork, name, "network %s does not exist")
		}
	}
	binds, devices, limited := sp.binds(), sp.host.Devices, sp.limitedDevices()
	for _, path := range slices.Sorted(maps.Keys(s.noPath)) {
		if slices.ContainsFunc(binds, func(b bind) bool { return b.source == path }) {
			add(plan.ProblemNoBindSource, path, "the source of bind mount %s does not exist on the engine's host")
		}
		if slices.ContainsFunc(devices, func(d container.DeviceMapping) bool { return d.PathOnHost == path }) {
			add(plan.ProblemNoDevice, path, "device %s does not exist on the engine's host")
		} else if slices.Contains(limited, path) {
			add(plan.ProblemNoDevice, path, "device %s, for which there is a limit of I/O, does not exist on the engine's host")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.noVolume)) {
		add(plan.ProblemNoVolume, name, "volume %s does not exist any more")
	}
	if runtime := sp.host.Runtime; !s.hasRuntime(runtime) {
		add(plan.ProblemNoRuntime, runtime, "runtime %s is not known to the engine")
	}
	for _, peer := range slices.Concat(sp.peers(), sp.volumeSources()) {
		if s.container(peer) == nil {
			found = append(found, plan.Problem{Kind: plan.ProblemNoContainer, Subject: peer, Text: sp.needs(peer) + ", which is gone"})
		}
	}
	return found
}

// peers are the containers whose namespaces or addresses the configuration asks for.
func (sp *spec) peers() []string {
	var peers []string
	if sp.host.NetworkMode.IsContainer() {
		peers = append(peers, sp.host.NetworkMode.ConnectedContainer())
	}
	if sp.host.IpcMode.IsContainer() {
		peers = append(peers, sp.host.IpcMode.Container())
	}
	if sp.host.PidMode.IsContainer() {
		peers = append(peers, sp.host.PidMode.Container())
	}
	for _, link := range sp.host.Links {
		target, _, _ := strings.Cut(link, ":")
		peers = append(peers, target)
	}
	slices.Sort(peers)
	return slices.Compact(peers)
}

// needs says what the container has of another one that it cannot start without.
func (sp *spec) needs(peer string) string {
	var has []string
	if sp.host.NetworkMode.ConnectedContainer() == peer {
		has = append(has, "the network")
	}
	if sp.host.IpcMode.Container() == peer {
		has = append(has, "the shared memory")
	}
	if sp.host.PidMode.Container() == peer {
		has = append(has, "the processes")
	}
	if slices.Contains(sp.volumeSources(), peer) {
		has = append(has, "the volumes")
	}
	name := peer
	if catalog.IsContainerID(peer) {
		name = peer[:dockerop.ShortID]
	}
	if known, ok := sp.names[peer]; ok {
		name = known
	}
	if len(has) == 0 {
		return "this container has a link to " + name
	}
	return "this container uses " + strings.Join(has, " and ") + " of " + name
}

// volumeSources are the containers whose volumes the configuration asks for
// (--volumes-from).
func (sp *spec) volumeSources() []string {
	sources := make([]string, len(sp.host.VolumesFrom))
	for i, from := range sp.host.VolumesFrom {
		sources[i], _, _ = strings.Cut(from, ":")
	}
	return sources
}

// container finds a container by its name or ID.
func (s surroundings) container(word string) *container.Summary {
	for i, c := range s.containers {
		if c.ID == word || slices.Contains(c.Names, "/"+word) {
			return &s.containers[i]
		}
	}
	return nil
}

func (s surroundings) network(name string) *network.Summary {
	for i, n := range s.networks {
		if n.Name == name || n.ID == name {
			return &s.networks[i]
		}
	}
	return nil
}

// hasRuntime takes shims for granted that the engine finds by their name.
func (s surroundings) hasRuntime(name string) bool {
	if name == "" || strings.HasPrefix(name, "io.containerd.") || strings.HasPrefix(name, "/") {
		return true
	}
	_, known := s.info.Runtimes[name]
	return known || name == s.info.DefaultRuntime
}
