// Package storage tells which volumes and paths are the same storage, and which containers use it.
// It observes once which directory or device is behind each volume, and then compares paths as they
// were given. It knows the Engine API, and nothing of snapshots.
package storage

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// Map says where the content of the engine's volumes is. Several names may lead to the same
// storage: a volume of the local driver may be a directory of the host or a network share, and a
// container may mount that directory itself.
//
// Paths are compared as they were given; symbolic links are not followed. A container that mounts
// the host's root or the engine's own directories sees every volume, but does not count as a user
// of them.
//
// A volume is named by its name, and a directory of the host that containers mount by its path, as
// [labels.Mount.Key] does.
type Map map[string][]place // by volume name

// place is where content is.
type place struct {
	on     string // which share or device the path is on; empty: the host
	path   string
	chosen bool // the user chose the path, not the engine
}

// slowList is the time after which a list of volumes is reported as slow: an engine waits for volume plugins that are dead.
const slowList = 2 * time.Second

// Observe asks the engine about all volumes of the local driver. Volumes of other drivers are
// compared by name only.
func Observe(ctx context.Context, docker *dockerop.Engine, p plan.Progress) (Map, error) {
	slow := time.AfterFunc(slowList, func() { p.Status("inspect", "waiting for the engine to list its volumes") })
	defer slow.Stop()
	list, err := docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("driver", "local"))})
	if err != nil {
		return nil, dockerop.Describe(err, "list volumes")
	}
	s := Map{}
	for _, v := range list.Volumes {
		if v != nil {
			s[v.Name] = placesOf(*v)
		}
	}
	return s, nil
}

func placesOf(v volume.Volume) []place {
	var places []place
	if v.Mountpoint != "" {
		places = append(places, place{path: path.Clean(v.Mountpoint)})
	}
	if device, ok := devicePlace(v.Options); ok {
		places = append(places, device)
	}
	return places
}

// And returns the storage as it is once these volumes have been made.
func (s Map) And(made []volume.CreateOptions) Map {
	all := Map{}
	maps.Copy(all, s)
	for _, create := range made {
		if _, known := all[create.Name]; !known && (create.Driver == "" || create.Driver == "local") {
			all[create.Name] = placesOf(volume.Volume{Options: create.DriverOpts})
		}
	}
	return all
}

// devicePlace returns what a volume of the local driver mounts. It returns false if nothing else
// can mount the same.
func devicePlace(options map[string]string) (place, bool) {
	device, flags := options["device"], strings.Split(options["o"], ",")
	switch kind := options["type"]; {
	case device == "":
		return place{}, false
	case slices.Contains(flags, "bind") || slices.Contains(flags, "rbind"):
		return place{path: path.Clean(device), chosen: true}, path.IsAbs(device)
	case strings.HasPrefix(kind, "nfs"), kind == "cifs":
		address := ""
		for _, flag := range flags {
			if value, ok := strings.CutPrefix(flag, "addr="); ok {
				address = value
			}
		}
		return place{on: kind[:3] + " " + address, path: path.Clean("/" + strings.TrimLeft(device, ":")), chosen: true}, true
	}
	return place{on: "device", path: device, chosen: true}, path.IsAbs(device)
}

// of returns where the content of a volume is, or of a directory of the host.
func (s Map) of(key string) []place {
	if labels.IsPathKey(key) {
		return []place{{path: path.Clean(key), chosen: true}}
	}
	return s[key]
}

// Overlap tells whether two keys may lead to the same storage.
func (s Map) Overlap(a, b string) bool { return a == b || overlap(s.of(a), s.of(b)) }

// SamePath tells of two keys that are paths whether one is the other, or within it.
func SamePath(a, b string) bool {
	return labels.IsPathKey(a) && labels.IsPathKey(b) && Map{}.Overlap(a, b)
}

// Paths returns the directories of the host that hold the content of these volumes, sorted.
func (s Map) Paths(keys []string) []string {
	var paths []string
	for _, key := range keys {
		for _, p := range s.of(key) {
			if p.on == "" {
				paths = append(paths, p.path)
			}
		}
	}
	return dockerop.Distinct(paths)
}

// Contains tells whether a volume's content is in a directory of the host, or is that directory.
func (s Map) Contains(directory, volume string) bool {
	return slices.ContainsFunc(s[volume], func(p place) bool {
		return p.on == "" && (p.path == directory || strings.HasPrefix(p.path, directory+"/"))
	})
}

// overlaps tells whether one place is within the other. A place that the engine chose does not
// count as within another: it lies in directories that monitoring programs mount to look after the
// host.
func (p place) overlaps(other place) bool {
	if p.on != other.on {
		return false
	}
	return p.path == other.path || p.within(other) || other.within(p)
}

func (p place) within(outer place) bool {
	return p.chosen && outer.path != "/" && strings.HasPrefix(p.path, outer.path+"/")
}

func overlap(a, b []place) bool {
	return slices.ContainsFunc(a, func(p place) bool { return slices.ContainsFunc(b, p.overlaps) })
}

// Aliases returns the names of all volumes that share storage with these, and these themselves,
// sorted.
func (s Map) Aliases(volumes []string) []string {
	names := slices.Clone(volumes)
	for name, places := range s {
		if slices.ContainsFunc(volumes, func(v string) bool { return overlap(places, s.of(v)) }) {
			names = append(names, name)
		}
	}
	return dockerop.Distinct(names)
}

// shownBy returns the first of the volumes whose content a mount shows, or "".
func (s Map) shownBy(m container.MountPoint, volumes []string) string {
	at := slices.IndexFunc(volumes, func(name string) bool {
		switch m.Type {
		case mount.TypeVolume:
			return m.Name == name || overlap(s[m.Name], s.of(name))
		case mount.TypeBind:
			return overlap([]place{{path: path.Clean(m.Source), chosen: true}}, s.of(name))
		}
		return false
	})
	if at < 0 {
		return ""
	}
	return volumes[at]
}

// Writes tells whether a container can write to one of the volumes.
func (s Map) Writes(c container.Summary, volumes []string) bool {
	return slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return m.RW && s.shownBy(m, volumes) != "" })
}

// UsesOf returns those of the volumes whose content a container sees.
func (s Map) UsesOf(c container.Summary, volumes []string) []string {
	var used []string
	for _, m := range c.Mounts {
		if name := s.shownBy(m, volumes); name != "" {
			used = append(used, name)
		}
	}
	return dockerop.Distinct(used)
}

// UsersAndWorkers returns the containers that run or are paused and see the content of one of the
// volumes. Our own workers are among them.
//
// Engine 29 takes a millisecond and a half for every container that it lists, so the engine is
// asked to filter by the names of volumes and the sources of binds. It cannot find the users of a
// part of a directory. So if one of the volumes is a directory that a user chose, all containers
// are listed.
func (s Map) UsersAndWorkers(ctx context.Context, docker *dockerop.Engine, volumes []string) ([]container.Summary, error) {
	args := filters.NewArgs(filters.Arg("status", container.StateRunning), filters.Arg("status", container.StatePaused), filters.Arg("status", container.StateRestarting))
	names := s.Aliases(volumes)
	if !s.onHostPaths(names) {
		for _, name := range names {
			args.Add("volume", name)
			for _, p := range s.of(name) {
				args.Add("volume", p.path)
			}
		}
	}
	list, err := docker.ContainerList(ctx, container.ListOptions{Filters: args})
	if err != nil {
		return nil, dockerop.Describe(err, "list containers that share volumes")
	}
	return slices.DeleteFunc(list, func(c container.Summary) bool { return len(s.UsesOf(c, volumes)) == 0 }), nil
}

// onHostPaths tells whether one of the volumes is a directory that a user chose.
func (s Map) onHostPaths(volumes []string) bool {
	return slices.ContainsFunc(volumes, func(name string) bool {
		return slices.ContainsFunc(s.of(name), func(p place) bool { return p.on == "" && p.chosen })
	})
}
