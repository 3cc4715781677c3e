package replace

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
	"github.com/cua-snapshot/docker-snapshot/volumebackup"
	"github.com/cua-snapshot/docker-snapshot/volumebackup/paths"
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

// UnknownPathError means that a pattern of [Options.Paths] matches nothing of what goes back.
type UnknownPathError struct {
	Pattern  string
	Snapshot labels.ID
	Volumes  []string // keys of those that were searched
}

func (e *UnknownPathError) Error() string {
	return fmt.Sprintf("%q matches nothing in %s of snapshot %s", e.Pattern, strings.Join(e.Volumes, ", "), e.Snapshot)
}

// Unwrap gives the error its class.
func (e *UnknownPathError) Unwrap() error { return cerrdefs.ErrNotFound }

// checkPaths refuses a pattern that matches nothing in the snapshots. A safety snapshot may lack a file that the restore has made:
// going back to it removes the file.
func (rp *Replacer) checkPaths(ctx context.Context, g *group, p plan.Progress) error {
	first := g.members[0]
	isSafety := func(m *member) bool { return m.Snapshot.IsSafety() }
	if len(first.options.Paths) == 0 || slices.ContainsFunc(g.members, isSafety) {
		return nil
	}
	unmatched, err := paths.NewUnmatched(first.options.Paths)
	if err != nil {
		return err
	}
	var searched []string
	for _, m := range g.members {
		for _, v := range m.Volumes {
			at := slices.IndexFunc(m.Snapshot.Mounts, func(mount labels.Mount) bool { return mount.Key() == v.Original && mount.Archive != nil })
			if v.Archive == nil || at < 0 || len(unmatched.Patterns()) == 0 {
				continue
			}
			p.Status("check", "looking for the paths in "+v.Original)
			searched = append(searched, v.Original)
			err := rp.archives.Entries(ctx, m.Snapshot, m.Snapshot.Mounts[at], archives.Listed, func(e volumebackup.Entry) {
				for _, destination := range m.destinations(v) {
					unmatched.See(path.Join(destination, string(e.Path)))
				}
			})
			if err != nil {
				return fmt.Errorf("look for the paths in %s: %w", labels.DescribeKey(v.Original), err)
			}
		}
	}
	if left := unmatched.Patterns(); len(left) > 0 {
		return &UnknownPathError{Pattern: left[0], Snapshot: first.Snapshot.ID, Volumes: searched}
	}
	return nil
}

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
		return m.Snapshot.Title()
	}
	what := strings.Join(m.options.Only, ", ")
	if len(m.options.Paths) > 0 {
		what = strings.Join(m.options.Paths, ", ") + " in " + what
	}
	return what + " of " + m.Snapshot.Title()
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
