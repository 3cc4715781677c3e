package dockerop

import (
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// Distinct is what any of the lists holds, once.
func Distinct(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// MountedVolumes are the names of a container's volumes.
func MountedVolumes(c container.InspectResponse) []string {
	var names []string
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume && m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return Distinct(names)
}

func SummaryName(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// How many digits of an ID docker shows, and how many there are.
const (
	ShortID = 12
	FullID  = 64
)

// Shorten shows as much of an ID as docker does.
func Shorten(id string) string { return id[:min(len(id), ShortID)] }

func ContainerName(c container.InspectResponse) string { return strings.TrimPrefix(c.Name, "/") }

// ContainerState maps the engine's states to ours. One that is restarting is
// meant to run.
func ContainerState(s *container.State) labels.State {
	switch {
	case s.Paused:
		return labels.StatePaused
	case s.Running || s.Restarting:
		return labels.StateRunning
	case s.Status == "created":
		return labels.StateCreated
	}
	return labels.StateExited
}
