package runconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/storage"
)

// Surroundings is what was observed of the engine before a restore.
type Surroundings struct {
	Info       system.Info
	Networks   []network.Summary
	Containers []container.Summary // stopped ones too, but not our workers
	Storage    storage.Map         // which volumes are the same
	NoVolume   map[string]bool     // named volumes that do not exist
	NoPath     map[string]bool     // paths that do not exist on the engine's host
	Key        []byte              // the engine's key; nil: it has none
	Inherited  map[string]string   // the labels of the snapshot's image
	Together   []string            // names and IDs of the containers that are made together with this one
}

// RequiredPaths returns the paths that must exist on the host. A missing source of a bind mount
// would silently become an empty directory.
func (sp *Spec) RequiredPaths() []string {
	var paths []string
	for _, b := range sp.Binds() {
		if !b.createsSource {
			paths = append(paths, b.Source)
		}
	}
	for _, d := range sp.Host.Devices {
		paths = append(paths, d.PathOnHost)
	}
	paths = append(paths, sp.limitedDevices()...)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// NamedVolumes returns the volumes that the configuration mounts by name, without those in made.
func (sp *Spec) NamedVolumes(made []NewVolume) []string {
	var names []string
	for _, text := range sp.Host.Binds {
		if b, ok := parseBind(text); ok && !b.IsPath() {
			names = append(names, b.Source)
		}
	}
	for _, m := range sp.Host.Mounts {
		if m.Type == mount.TypeVolume && m.Source != "" {
			names = append(names, m.Source)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(made, func(v NewVolume) bool { return v.Create.Name == name })
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// Problems returns what prevents making a container of sp with that name.
func (s Surroundings) Problems(sp *Spec, name string) []plan.Problem {
	var found []plan.Problem
	add := func(kind plan.ProblemKind, subject, format string) {
		found = append(found, plan.Problem{Kind: kind, Subject: subject, Text: fmt.Sprintf(format, subject)})
	}
	if s.Container(name) != nil {
		add(plan.ProblemNameTaken, name, "a container named %s exists already")
	}
	for _, name := range slices.Sorted(maps.Keys(sp.Endpoints)) {
		switch n := s.network(name); {
		case n == nil:
			add(plan.ProblemNoNetwork, name, "network %s does not exist")
		case s.isAmbiguous(name):
			add(plan.ProblemTwoNetworks, name, "there are several networks named %s")
		}
	}
	binds, devices, limited := sp.Binds(), sp.Host.Devices, sp.limitedDevices()
	for _, path := range slices.Sorted(maps.Keys(s.NoPath)) {
		if slices.ContainsFunc(binds, func(b Bind) bool { return b.Source == path }) {
			add(plan.ProblemNoBindSource, path, "the source of bind mount %s does not exist on the engine's host")
		}
		if slices.ContainsFunc(devices, func(d container.DeviceMapping) bool { return d.PathOnHost == path }) {
			add(plan.ProblemNoDevice, path, "device %s does not exist on the engine's host")
		} else if slices.Contains(limited, path) {
			add(plan.ProblemNoDevice, path, "device %s, whose I/O is limited, does not exist on the engine's host")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.NoVolume)) {
		add(plan.ProblemNoVolume, name, "volume %s does not exist any more")
	}
	if runtime := sp.Host.Runtime; !s.hasRuntime(runtime) {
		add(plan.ProblemNoRuntime, runtime, "runtime %s is not known to the engine")
	}
	for _, peer := range sp.Relations() {
		if s.Container(peer) == nil && !slices.Contains(s.Together, peer) {
			found = append(found, plan.Problem{Kind: plan.ProblemNoContainer, Subject: peer, Text: sp.Needs(peer) + ", which is gone"})
		}
	}
	return found
}

// Peers returns the containers that the configuration shares a namespace with, or links to.
func (sp *Spec) Peers() []string {
	var peers []string
	if sp.Host.NetworkMode.IsContainer() {
		peers = append(peers, sp.Host.NetworkMode.ConnectedContainer())
	}
	if sp.Host.IpcMode.IsContainer() {
		peers = append(peers, sp.Host.IpcMode.Container())
	}
	if sp.Host.PidMode.IsContainer() {
		peers = append(peers, sp.Host.PidMode.Container())
	}
	for _, link := range sp.Host.Links {
		target, _, _ := strings.Cut(link, ":")
		peers = append(peers, target)
	}
	slices.Sort(peers)
	return slices.Compact(peers)
}

// Relations returns the containers that must be there to make this one: its peers, and those whose
// volumes it mounts.
func (sp *Spec) Relations() []string { return slices.Concat(sp.Peers(), sp.volumeSources()) }

// Follow makes the configuration name those containers differently that were made again: now returns
// the present name or ID of each.
func (sp *Spec) Follow(now func(word string) string) {
	h := &sp.Host
	if h.NetworkMode.IsContainer() {
		h.NetworkMode = container.NetworkMode("container:" + now(h.NetworkMode.ConnectedContainer()))
	}
	if h.IpcMode.IsContainer() {
		h.IpcMode = container.IpcMode("container:" + now(h.IpcMode.Container()))
	}
	if h.PidMode.IsContainer() {
		h.PidMode = container.PidMode("container:" + now(h.PidMode.Container()))
	}
	for _, list := range [][]string{h.Links, h.VolumesFrom} {
		for i, entry := range list {
			word, rest, found := strings.Cut(entry, ":")
			if list[i] = now(word); found {
				list[i] += ":" + rest
			}
		}
	}
}

// FollowNames makes the configuration refer to containers that were made again since it was captured: by their names they
// are found again. find returns the present word for a name or an ID, or "".
func (sp *Spec) FollowNames(find func(word string) string) {
	names := maps.Clone(sp.names)
	sp.Follow(func(word string) string {
		name, known := names[word]
		if !known || find(word) != "" {
			return word
		}
		now := find(name)
		if now == "" {
			return word
		}
		names[now] = name
		return now
	})
	sp.names = names
}

// Find returns the ID of the container with that name or ID, or the name if that container is made together with this one.
func (s Surroundings) Find(word string) string {
	if slices.Contains(s.Together, word) {
		return word
	}
	if c := s.Container(word); c != nil {
		return c.ID
	}
	return ""
}

// Needs says what the container uses of another one, without which it cannot start.
func (sp *Spec) Needs(peer string) string {
	var has []string
	if sp.Host.NetworkMode.ConnectedContainer() == peer {
		has = append(has, "the network")
	}
	if sp.Host.IpcMode.Container() == peer {
		has = append(has, "the shared memory")
	}
	if sp.Host.PidMode.Container() == peer {
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

// volumeSources returns the containers whose volumes the configuration mounts (--volumes-from).
func (sp *Spec) volumeSources() []string {
	sources := make([]string, len(sp.Host.VolumesFrom))
	for i, from := range sp.Host.VolumesFrom {
		sources[i], _, _ = strings.Cut(from, ":")
	}
	return sources
}

// Container returns the container with that name or ID, or nil.
func (s Surroundings) Container(word string) *container.Summary {
	for i, c := range s.Containers {
		if c.ID == word || slices.Contains(c.Names, "/"+word) {
			return &s.Containers[i]
		}
	}
	return nil
}

func (s Surroundings) network(name string) *network.Summary {
	for i, n := range s.Networks {
		if n.Name == name || n.ID == name {
			return &s.Networks[i]
		}
	}
	return nil
}

// isAmbiguous reports whether several networks have a name. Engine 20.10 makes them, and then starts no container in one.
func (s Surroundings) isAmbiguous(name string) bool {
	if slices.ContainsFunc(s.Networks, func(n network.Summary) bool { return n.ID == name }) {
		return false
	}
	named := 0
	for _, n := range s.Networks {
		if n.Name == name {
			named++
		}
	}
	return named > 1
}

// hasRuntime tells whether the engine has a runtime. It believes names of shims and paths, which
// the engine does not list.
func (s Surroundings) hasRuntime(name string) bool {
	if name == "" || strings.HasPrefix(name, "io.containerd.") || strings.HasPrefix(name, "/") {
		return true
	}
	_, known := s.Info.Runtimes[name]
	return known || name == s.Info.DefaultRuntime
}

// Has tells whether there is a container with the ID or the name of c.
func (s Surroundings) Has(c labels.Container) bool {
	return slices.ContainsFunc(s.Containers, func(other container.Summary) bool {
		return other.ID == c.ID || dockerop.SummaryName(other) == c.Name
	})
}
