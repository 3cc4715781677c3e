package replace

import (
	"fmt"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
)

// notChosen is why a volume stays as it is that was not among those that were asked for.
const notChosen = "it was not asked for"

// UnknownPartError means that something was asked for alone that the snapshots do not have.
type UnknownPartError struct {
	Word  string
	Parts []string // that there are
}

func (e *UnknownPartError) Error() string {
	return fmt.Sprintf("there is nothing %q to restore alone: the snapshot has %s", e.Word, strings.Join(e.Parts, ", "))
}

// Unwrap gives the error its class.
func (e *UnknownPartError) Unwrap() error { return cerrdefs.ErrInvalidArgument }

// chooseParts finds out which volumes the words of [Options.Only] name. One that names nothing of any member is an
// error.
func (g *group) chooseParts() error {
	var parts []string
	for _, m := range g.members {
		if !m.options.Lost {
			parts = append(parts, Rootfs)
		}
		parts = append(parts, m.volumeParts()...)
	}
	for _, m := range g.members {
		for _, word := range m.options.Only {
			known := word == Rootfs && !m.options.Lost
			for _, other := range g.members {
				known = known || len(other.named(word)) > 0
			}
			if !known {
				return &UnknownPartError{Word: word, Parts: dockerop.Distinct(parts)}
			}
			m.chosen = append(m.chosen, m.named(word)...)
		}
	}
	return nil
}

// named are the volumes that a word names: by their name, or by where they are mounted.
func (m *member) named(word string) []string {
	var names []string
	for _, v := range m.mounts {
		if word == v.Create.Name || word == v.Original || slices.Contains(m.destinations(v), path.Clean(word)) {
			names = append(names, v.Create.Name)
		}
	}
	return names
}

// destinations are where a captured volume was mounted.
func (m *member) destinations(v runconfig.PlacedVolume) []string {
	var at []string
	for _, mount := range m.Snapshot.Mounts {
		if mount.Key() == v.Original {
			at = append(at, path.Clean(mount.Destination))
		}
	}
	return at
}

// volumeParts are the volumes that the snapshot has content of, for people.
func (m *member) volumeParts() []string {
	var parts []string
	for _, v := range m.mounts {
		if v.Archive != nil {
			parts = append(parts, fmt.Sprintf("%s (%s)", v.Create.Name, strings.Join(m.destinations(v), ", ")))
		}
	}
	return parts
}

// whatGoesBack says what is restored of which snapshot.
func (m *member) whatGoesBack() string {
	if len(m.options.Only) == 0 {
		return string(m.Snapshot.ID)
	}
	what := strings.Join(m.options.Only, ", ")
	if len(m.options.Paths) > 0 {
		what = strings.Join(m.options.Paths, ", ") + " in " + what
	}
	return what + " of " + string(m.Snapshot.ID)
}

// choiceIn says which entries of a volume go back; nil: all.
func (m *member) choiceIn(v runconfig.PlacedVolume) *volumebackup.Choice {
	if len(m.options.Paths) == 0 {
		return nil
	}
	return &volumebackup.Choice{Patterns: m.options.Paths, At: m.destinations(v)}
}

// leaveUnchosen leaves the volumes as they are that were not asked for. One that is gone is made again with the
// container, which needs it.
func (m *member) leaveUnchosen() {
	if len(m.options.Only) == 0 {
		if m.options.Lost {
			m.leaveUnmounted()
		}
		return
	}
	isChosen := func(v runconfig.PlacedVolume) bool { return slices.Contains(m.chosen, v.Create.Name) }
	if m.options.keeps() {
		m.mounts = slices.DeleteFunc(m.mounts, func(v runconfig.PlacedVolume) bool { return !v.Exists && !isChosen(v) })
	}
	for i := range m.mounts {
		if v := &m.mounts[i]; !isChosen(*v) && (v.Exists || v.Elsewhere) {
			v.Archive, v.Kept = nil, notChosen
		}
	}
}

// leaveUnmounted leaves the volumes as they are that a container which is kept does not mount.
func (m *member) leaveUnmounted() {
	if m.Old == nil {
		return // that is a problem anyway
	}
	mounted := dockerop.MountedVolumes(*m.Old)
	m.mounts = slices.DeleteFunc(m.mounts, func(v runconfig.PlacedVolume) bool { return !v.Exists && !slices.Contains(mounted, v.Create.Name) })
	for i := range m.mounts {
		if v := &m.mounts[i]; v.Archive != nil && !slices.Contains(mounted, v.Create.Name) {
			v.Archive, v.Kept = nil, "container "+m.Name+" does not mount it"
		}
	}
}
