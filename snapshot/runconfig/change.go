package runconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
)

// ConfigChange is a difference that a restore in place makes to a container's configuration. Of an
// environment variable only the name is told, because the values may be secrets.
type ConfigChange struct {
	What string // one of the kinds below
	Name string // of the variable, the port or the folder
	Verb string // add, change or remove
	Now  string
	Then string
}

// The kinds of changes.
const (
	ConfigImage       = "image"
	ConfigEnvironment = "environment"
	ConfigPort        = "port"
	ConfigMount       = "mount"
)

// Changes compares a container with what the snapshot makes of it.
func Changes(old container.InspectResponse, s catalog.Snapshot, sp *Spec) []ConfigChange {
	changes := imageChange(old, s)
	for _, c := range compareNamed(variables(old.Config.Env), variables(sp.Config.Env)) {
		c.What, c.Now, c.Then = ConfigEnvironment, "", ""
		changes = append(changes, c)
	}
	for _, c := range compareNamed(publications(old.HostConfig.PortBindings), publications(sp.Host.PortBindings)) {
		c.What = ConfigPort
		changes = append(changes, c)
	}
	for _, c := range compareNamed(mountedNow(old.Mounts), mountedThen(s.Mounts)) {
		c.What = ConfigMount
		changes = append(changes, c)
	}
	return changes
}

// imageChange compares the names of the images, and what they stand for. A container that was
// restored does not say from which image it once ran, so it has no change.
func imageChange(old container.InspectResponse, s catalog.Snapshot) []ConfigChange {
	now, then := old.Config.Image, s.Container.Image
	if old.Config.Labels[labels.KeyRestoredFrom] != "" || old.Image == s.Container.ImageID {
		return nil
	}
	if now == then {
		now, then = now+" ("+shortImage(old.Image)+")", then+" ("+shortImage(s.Container.ImageID)+")"
	}
	return []ConfigChange{{What: ConfigImage, Verb: "change", Now: now, Then: then}}
}

func shortImage(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), dockerop.ShortID)]
}

// compareNamed returns a change for each name whose text differs, in the order of the names.
func compareNamed(now, then map[string]string) []ConfigChange {
	var changes []ConfigChange
	all := maps.Clone(now)
	maps.Copy(all, then)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, was := now[name]
		after, is := then[name]
		switch {
		case !was:
			changes = append(changes, ConfigChange{Name: name, Verb: "add", Then: after})
		case !is:
			changes = append(changes, ConfigChange{Name: name, Verb: "remove", Now: before})
		case before != after:
			changes = append(changes, ConfigChange{Name: name, Verb: "change", Now: before, Then: after})
		}
	}
	return changes
}

func variables(env []string) map[string]string {
	values := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		values[name] = value
	}
	return values
}

// publications says where each port is published.
func publications(ports nat.PortMap) map[string]string {
	where := map[string]string{}
	for port, bindings := range ports {
		var texts []string
		for _, b := range bindings {
			text := b.HostPort
			if text == "" || text == "0" {
				text = "a free port"
			}
			if b.HostIP != "" && b.HostIP != "0.0.0.0" && b.HostIP != "::" {
				text = b.HostIP + ":" + text
			}
			texts = append(texts, text)
		}
		if len(texts) > 0 {
			slices.Sort(texts)
			where[string(port)] = strings.Join(slices.Compact(texts), ", ")
		}
	}
	return where
}

func mountedNow(mounts []container.MountPoint) map[string]string {
	what := map[string]string{}
	for _, m := range mounts {
		if text := describeMount(string(m.Type), m.Name, m.Source, m.RW); text != "" {
			what[m.Destination] = text
		}
	}
	return what
}

func mountedThen(mounts []labels.Mount) map[string]string {
	what := map[string]string{}
	for _, m := range mounts {
		if text := describeMount(m.Type, m.Name, m.Source, m.RW); text != "" {
			what[m.Destination] = text
		}
	}
	return what
}

// describeMount says what is mounted. It returns "" for a mount that holds no data.
func describeMount(kind, name, source string, writable bool) string {
	var text string
	switch mount.Type(kind) {
	case mount.TypeVolume:
		const generated = 64 // hex digits
		if len(name) == generated {
			name = name[:dockerop.ShortID]
		}
		text = "volume " + name
	case mount.TypeBind:
		text = "bind of " + source
	default:
		return ""
	}
	if !writable {
		return fmt.Sprintf("%s (read-only)", text)
	}
	return text
}
